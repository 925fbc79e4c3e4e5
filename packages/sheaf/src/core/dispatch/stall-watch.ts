import type { Clock } from "../runtime/clock.ts";
import { warn } from "../runtime/globals.ts";

/** A batcher that makes no progress for this long, with all slots taken and items waiting, says so once. */
const stallWarningMs = 10_000;

/** Warns of a batcher that stands still: mostly its batch function calls it and waits for the answer. */
export class StallWatch {
  readonly #clock: Clock;
  readonly #batcherName: string;
  #progress = 0;
  #cancel: (() => void) | undefined = undefined;
  #hasWarned = false;

  constructor({ clock, name }: { readonly clock: Clock; readonly name: string }) {
    this.#clock = clock;
    this.#batcherName = name;
  }

  /** A batch has started or ended. */
  progressed(): void {
    this.#progress++;
  }

  /** Called whenever it may have come to a stand, and when it may have gone on: then nothing keeps the process alive. */
  look(isBlocked: boolean, waiting: number, inFlight: number): void {
    if (this.#hasWarned) return;
    if (!isBlocked) return this.stop();
    if (this.#cancel !== undefined) return;
    const progressThen = this.#progress;
    this.#cancel = this.#clock.after(stallWarningMs, () => {
      this.#cancel = undefined;
      if (this.#progress !== progressThen) return this.look(isBlocked, waiting, inFlight);
      this.#hasWarned = true;
      warn(
        `${this.#batcherName}: no progress for ${stallWarningMs / 1000} s: items wait (${waiting} when it began) and all ` +
          `${inFlight} slots are taken. Does the batch function call its own batcher and wait for it? ` +
          "Set runTimeoutMs to bound a run, or raise concurrency.",
      );
    });
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}
