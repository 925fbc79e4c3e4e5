import { Alarm } from "../runtime/alarm.ts";
import type { Clock } from "../runtime/clock.ts";
import { warnOnce } from "../runtime/globals.ts";

/** A batcher that makes no progress for this long, with all slots taken and items waiting, warns once. */
export const defaultStallWarningMs = 10_000;

/**
 * Warns of a batcher that is stuck: usually its batch function calls it and waits for the answer. Watch from when it may be
 * stuck, and turn it off when it may have gone on: then no timer keeps the process alive.
 */
export class StallWatch extends Alarm {
  readonly #afterMs: number;
  readonly #started: () => number;
  #startedBefore = 0;

  /** Warns after `afterMs`, with Infinity never; `started`: batches started so far. */
  constructor(
    { clock, name }: { readonly clock: Clock; readonly name: string },
    afterMs: number,
    started: () => number,
  ) {
    const warn = warnOnce();
    super(clock, (nowMs) => {
      if (started() > this.#startedBefore) return this.watchFrom(nowMs);
      warn(
        `${name}: no progress for ${afterMs / 1000} s: items wait, and no slot is free. Does the batch function ` +
          "call its own batcher and wait for it? Set runTimeoutMs to bound a run.",
      );
    });
    this.#afterMs = afterMs;
    this.#started = started;
  }

  watchFrom(nowMs: number): void {
    this.#startedBefore = this.#started();
    this.set(nowMs + this.#afterMs);
  }
}
