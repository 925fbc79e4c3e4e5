import { Alarm, type Clock, warnOnce } from "../runtime/runtime.ts";
import type { Dispatcher } from "./dispatcher.ts";

/** A batcher that makes no progress for this long, with all slots taken and items waiting, warns once. */
export const defaultStallWarningMs = 10_000;
/** And after this long if every running batch has called the batcher itself. */
const selfCallWarningMs = 1000;

/**
 * Warns of a batcher that is stuck: usually its batch function calls it and waits for the answer. Watch from when it may be
 * stuck, and turn it off when it may have gone on: then no timer keeps the process alive.
 */
export class StallWatch extends Alarm {
  readonly #afterMs: number;
  readonly #batches: Pick<Dispatcher<never, never>, "started" | "haveAllCalled">;
  #startedBefore = 0;
  #forMs = 0;

  /** Warns after `afterMs`, with Infinity never. */
  constructor(
    { clock, name }: { readonly clock: Clock; readonly name: string },
    afterMs: number,
    batches: Pick<Dispatcher<never, never>, "started" | "haveAllCalled">,
  ) {
    const warn = warnOnce();
    super(clock, (nowMs) => {
      if (batches.started > this.#startedBefore) return this.watchFrom(nowMs);
      const cause = batches.haveAllCalled()
        ? "Every running batch has called this batcher: if its batch function waits for the answer, none of them ends."
        : "Does the batch function call its own batcher and wait for it?";
      warn(
        `${name}: no progress for ${this.#forMs / 1000} s: items wait and no slot is free. ${cause} ` +
          "Set runTimeoutMs to bound a run.",
      );
    });
    this.#afterMs = afterMs;
    this.#batches = batches;
  }

  watchFrom(nowMs: number): void {
    this.#startedBefore = this.#batches.started;
    this.#forMs = this.#afterMs < Infinity && this.#batches.haveAllCalled() ? selfCallWarningMs : this.#afterMs;
    this.set(nowMs + this.#forMs);
  }
}
