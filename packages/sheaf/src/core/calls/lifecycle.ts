import type { SchedulerParts, Scheduler } from "../dispatch/scheduler.ts";
import { BatcherError } from "../contract/errors.ts";
import type { Executor } from "../contract/executor.ts";
import { checkNotNegative } from "../../shared/checks.ts";

/** The lifecycle of a batcher: when it starts to run batches, flush and drain, and how it closes. */
export class Lifecycle<In, Out> {
  /** Resolves when batches can run; rejects with the reason if they never will. */
  readiness: Promise<void> = Promise.resolve();
  readonly #parts: SchedulerParts<In, Out>;
  readonly #scheduler: Scheduler<In, Out>;
  readonly #executor: Pick<Executor<In, Out>, "close">;
  #closing: Promise<void> | undefined;

  constructor(
    parts: SchedulerParts<In, Out>,
    scheduler: Scheduler<In, Out>,
    executor: Pick<Executor<In, Out>, "close">,
  ) {
    this.#parts = parts;
    this.#scheduler = scheduler;
    this.#executor = executor;
  }

  /** Starts; a batch function, unlike an executor, can run at once. */
  begin(executor: Pick<Executor<In, Out>, "ready"> | undefined): void {
    if (executor === undefined) this.#scheduler.open = true;
    else {
      this.readiness = (async () => this.#parts.cost.warmedUp((await executor.ready()) ?? []))();
      this.readiness.then(this.#open, this.#fail);
    }
  }

  flush(): Promise<void> {
    const { queue, admission } = this.#parts;
    if (queue.size === 0 && (admission.waiters?.size ?? 0) === 0) return Promise.resolve();
    const epoch = this.#parts.epochs.separate();
    queue.relabel(epoch);
    admission.waiters?.relabel(epoch);
    this.#scheduler.wake();
    return this.#parts.epochs.settlement(epoch, false);
  }

  drain(): Promise<void> {
    const epoch = this.#parts.epochs.seal();
    this.#parts.queue.release("drain");
    this.#scheduler.wake();
    return this.#parts.epochs.settlement(epoch, true);
  }

  close(graceMs?: number): Promise<void> {
    try {
      if (graceMs !== undefined) checkNotNegative("graceMs", graceMs);
    } catch (error) {
      return Promise.reject(error);
    }
    this.#parts.admission.refusal ??= { error: this.closedError("closed.") };
    this.#closing ??= this.#finish();
    if (graceMs !== undefined && graceMs !== Infinity) {
      const cancel = this.#parts.settings.clock.after(graceMs, () => this.#cutOff(graceMs));
      this.#closing.then(cancel, cancel);
    }
    return this.#closing;
  }

  closedError(message: string): BatcherError {
    return new BatcherError("CLOSED", `${this.#parts.settings.name}: ${message}`);
  }

  readonly #open = (): void => {
    this.#scheduler.open = true;
    this.#scheduler.wake();
  };

  readonly #fail = (error: unknown): void => {
    this.#parts.admission.refusal ??= { error };
    this.#withdrawAll(error);
  };

  async #finish(): Promise<void> {
    await this.drain();
    await this.#parts.dispatcher.answeringRunsEnded();
    this.#scheduler.stop();
    await this.#executor.close();
    this.#parts.dispatcher.stopTimers();
  }

  #cutOff(graceMs: number): void {
    const error = this.closedError(`closed; the call was cut off after ${graceMs} ms (graceMs).`);
    this.#withdrawAll(error);
    this.#parts.dispatcher.cutOff(error);
  }

  #withdrawAll(error: unknown): void {
    const { admission, queue, settlement } = this.#parts;
    admission.waiters?.rejectAll(error);
    queue.everyChunk((chunk) => {
      for (let i = 0; i < chunk.count; i++) {
        while (chunk.settlers[i] !== undefined) settlement.withdraw(chunk, i, error, "rejected");
      }
    });
  }
}
