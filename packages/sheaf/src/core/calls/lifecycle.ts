import type { Dispatcher } from "../dispatch/dispatcher.ts";
import type { Scheduler } from "../dispatch/scheduler.ts";
import type { Admission } from "../queue/admission.ts";
import type { Queue } from "../queue/queue.ts";
import type { Settings } from "../contract/settings.ts";
import { BatcherError } from "../contract/errors.ts";
import type { Executor } from "../contract/executor.ts";

/** The lifecycle of a batcher: when it starts to run batches, flush and drain, and how it closes. */
export class Lifecycle<In, Out> {
  /** Resolves when batches can run; rejects with the reason if they never will. */
  readiness: Promise<void> = Promise.resolve();
  readonly #settings: Settings<In, Out>;
  readonly #queue: Queue<In>;
  readonly #admission: Admission<In>;
  readonly #dispatcher: Dispatcher<In, Out>;
  readonly #scheduler: Scheduler<In, Out>;
  readonly #executor: Pick<Executor<In, Out>, "close"> | undefined;
  #closing: Promise<void> | undefined;

  constructor(
    settings: Settings<In, Out>,
    queue: Queue<In>,
    admission: Admission<In>,
    dispatcher: Dispatcher<In, Out>,
    scheduler: Scheduler<In, Out>,
    executor: Pick<Executor<In, Out>, "close"> | undefined,
  ) {
    this.#settings = settings;
    this.#queue = queue;
    this.#admission = admission;
    this.#dispatcher = dispatcher;
    this.#scheduler = scheduler;
    this.#executor = executor;
  }

  /** Starts: at once, as a batch function can, or when its executor is ready. */
  begin(ready?: Promise<void>): void {
    if (ready === undefined) return this.#dispatcher.open();
    this.readiness = ready;
    ready.then(this.#open, this.#fail);
  }

  flush(): Promise<void> {
    const { epochs } = this.#queue;
    if (this.#queue.size === 0 && !this.#admission.hasWaiters) return Promise.resolve();
    const epoch = epochs.separate();
    this.#queue.relabel(epoch);
    this.#admission.relabel(epoch);
    this.#scheduler.wake();
    return epochs.settlement(epoch, false);
  }

  drain(): Promise<void> {
    const epoch = this.#queue.epochs.seal();
    this.#queue.release("drain");
    this.#scheduler.wake();
    return this.#queue.epochs.settlement(epoch, true);
  }

  close(graceMs?: number): Promise<void> {
    this.#admission.close(this.closedError("closed."));
    this.#closing ??= this.#finish();
    if (graceMs !== undefined && graceMs !== Infinity) {
      const cancel = this.#settings.clock.after(graceMs, () => this.#cutOff(graceMs));
      this.#closing.then(cancel, cancel);
    }
    return this.#closing;
  }

  closedError(message: string): BatcherError {
    return new BatcherError("CLOSED", `${this.#settings.name}: ${message}`);
  }

  readonly #open = (): void => {
    this.#dispatcher.open();
    this.#scheduler.wake();
  };

  readonly #fail = (error: unknown): void => {
    this.#admission.close(error);
    this.#admission.rejectAll(error);
  };

  async #finish(): Promise<void> {
    await this.drain();
    await this.#dispatcher.answeringRunsEnded();
    this.#scheduler.stop();
    await this.#executor?.close();
    this.#dispatcher.stopTimers();
  }

  #cutOff(graceMs: number): void {
    const error = this.closedError(`closed; the call was cut off after ${graceMs} ms (graceMs).`);
    this.#admission.rejectAll(error);
    this.#dispatcher.cutOff(error);
  }
}
