import { BatcherError } from "../contract/errors.ts";
import type { Settings } from "../contract/settings.ts";
import { Alarm } from "../runtime/runtime.ts";
import { warnOnce } from "../runtime/warnings.ts";
import type { Dispatcher } from "./dispatcher.ts";

/** A batcher that makes no progress for this long, with all slots taken and items waiting, warns once. */
export const defaultStallWarningMs = 10_000;
/** And after this long if every running batch has called the batcher itself. */
const selfCallWarningMs = 1000;
/** Runs that were given up have this long, and `runTimeoutMs`, to end before calls are refused: most obey their signal. */
const leastHungMs = 1000;

type Batches = Pick<Dispatcher<never, never>, "started" | "haveAllCalled" | "isHung" | "abandonedNow" | "learners">;

/**
 * Watches a batcher whose slots are all taken. One that is stuck gets a warning: usually its batch function calls it and waits for the
 * answer. Where runs that were given up do not end, `hung` is called. Watch from when it may be stuck, and turn it off when it may
 * have gone on: then no timer keeps the process alive.
 */
export class StallWatch extends Alarm {
  readonly #settings: Pick<Settings<never, never>, "clock" | "name" | "runTimeoutMs">;
  readonly #afterMs: number;
  readonly #batches: Batches;
  #startedBefore = 0;
  #forMs = 0;
  #isForHung = false;

  /** Warns after `afterMs`, with Infinity never. */
  constructor(
    settings: Pick<Settings<never, never>, "clock" | "name" | "runTimeoutMs">,
    afterMs: number,
    batches: Batches,
    hung: (error: BatcherError) => void,
  ) {
    const warn = warnOnce();
    super(settings.clock, (nowMs) => {
      if (batches.isHung) return hung(this.#hungError());
      if (batches.started > this.#startedBefore) return this.watchFrom(nowMs);
      for (const learner of batches.learners) learner.stoodStill?.(nowMs, this.#forMs);
      const cause = this.cause ?? "Does the batch function call its own batcher and wait for it?";
      warn(
        `${settings.name}: no progress for ${this.#forMs / 1000} s: items wait and no slot is free. ${cause} ` +
          "Set runTimeoutMs to bound a run.",
      );
    });
    this.#settings = settings;
    this.#afterMs = afterMs;
    this.#batches = batches;
  }

  /** Why nothing starts; undefined where that is not known. */
  get cause(): string | undefined {
    const { isHung, abandonedNow } = this.#batches;
    if (isHung)
      return `All slots are taken by ${abandonedNow} runs that were given up (runTimeoutMs) and have not ended.`;
    if (!this.#batches.haveAllCalled()) return undefined;
    return "Every running batch has called this batcher: if its batch function waits for the answer, none of them ends.";
  }

  /** It is stuck, perhaps: watches from now, or goes on as it did. */
  keep(): void {
    if (this.atMs === Infinity || this.#isForHung !== this.#batches.isHung) this.watchFrom(this.#settings.clock.now());
  }

  watchFrom(nowMs: number): void {
    this.#isForHung = this.#batches.isHung;
    this.#startedBefore = this.#batches.started;
    const warnsAfterMs = this.#afterMs < Infinity && this.#batches.haveAllCalled() ? selfCallWarningMs : this.#afterMs;
    this.#forMs = this.#isForHung ? Math.max(leastHungMs, this.#settings.runTimeoutMs!) : warnsAfterMs;
    this.set(nowMs + this.#forMs);
  }

  #hungError(): BatcherError {
    const { abandonedNow: hungRuns } = this.#batches;
    return new BatcherError(
      "RUN_TIMEOUT",
      `${this.#settings.name}: ${this.cause} Calls are refused until one ends. End a run when context.signal aborts, or run ` +
        "batches in worker processes, which can be killed.",
      { hungRuns, runTimeoutMs: this.#settings.runTimeoutMs },
    );
  }
}
