import { BaseRunHandle } from "../contract/base-run-handle.ts";
import { newAbortController } from "../runtime/signals.ts";
import { warn } from "../runtime/warnings.ts";

/** A run, or a part of one, that is given up when it takes too long. */
export abstract class TimedRun extends BaseRunHandle {
  /** Given up: its slot is free for others. */
  abandoned = false;
  /** Under runTimeoutMs, with an executor that `reportsStart`. */
  timer: { start(): void; stop(): void } | undefined;
  /** Ends the timer of runTimeoutMs, with any executor. */
  stopTimer: (() => void) | undefined;
  /** Set where it goes on after it was settled. */
  stillRuns: Promise<unknown> | undefined;
  /** Set when its signal has aborted, or would have. */
  aborted: { readonly reason: unknown } | undefined;
  #controller: ReturnType<typeof newAbortController> | undefined;
  #abortListeners: Set<(reason: unknown) => void> | undefined;

  givenUp(_reason: unknown): void {
    this.abandoned = true;
  }

  /** Given up, it has ended after all. */
  abstract endedLate(): void;

  /** Made when the batch function reads it: most never do. */
  override get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = newAbortController();
      if (this.aborted !== undefined) this.#controller.abort(this.aborted.reason);
    }
    return this.#controller.signal;
  }

  override onAborted(listener: (reason: unknown) => void): () => void {
    const listeners = (this.#abortListeners ??= new Set()).add(listener);
    return () => listeners.delete(listener);
  }

  abort(reason: unknown): void {
    this.aborted ??= { reason };
    this.#controller?.abort(reason);
    for (const listener of this.#abortListeners ?? []) {
      try {
        listener(reason);
      } catch (error) {
        warn(`A listener of onAborted threw, in batch ${this.batchId}.`, error);
      }
    }
  }

  override started(): void {
    super.started();
    this.timer?.start();
  }

  override stopped(): void {
    this.timer?.stop();
  }

  override runsUntil(ended: Promise<unknown>): void {
    this.stillRuns = ended;
  }

  override deliver(index: number, result: unknown): boolean {
    return !this.abandoned && super.deliver(index, result);
  }
}
