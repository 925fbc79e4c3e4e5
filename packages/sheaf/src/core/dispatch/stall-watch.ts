import { Alarm } from "../runtime/alarm.ts";
import type { Clock } from "../runtime/clock.ts";
import { warnOnce } from "../runtime/globals.ts";

/** A batcher that makes no progress for this long, with all slots taken and items waiting, warns once. */
const stallWarningMs = 10_000;

/** Warns of a batcher that is stuck: usually its batch function calls it and waits for the answer. */
export class StallWatch {
  readonly #clock: Clock;
  readonly #alarm: Alarm;
  #hasProgressed = false;

  constructor({ clock, name }: { readonly clock: Clock; readonly name: string }) {
    const warn = warnOnce();
    this.#clock = clock;
    this.#alarm = new Alarm(clock, (nowMs) => {
      if (this.#hasProgressed) return this.#watchFrom(nowMs);
      warn(
        `${name}: no progress for ${stallWarningMs / 1000} s: items wait, and no slot is free. Does the batch function ` +
          "call its own batcher and wait for it? Set runTimeoutMs to bound a run, or raise concurrency.",
      );
    });
  }

  /** A batch has started or ended. */
  progressed(): void {
    this.#hasProgressed = true;
  }

  /** Called whenever it may be stuck, and when it may have gone on: then no timer keeps the process alive. */
  look(isBlocked: boolean): void {
    if (!isBlocked) return this.#alarm.set(Infinity);
    if (this.#alarm.atMs === Infinity) this.#watchFrom(this.#clock.now());
  }

  #watchFrom(nowMs: number): void {
    this.#hasProgressed = false;
    this.#alarm.set(nowMs + stallWarningMs);
  }

  stop(): void {
    this.#alarm.set(Infinity);
  }
}
