import type { BatchRecord } from "../policies/policy.ts";
import type { LearnedCost } from "./learned-cost.ts";

/** Most items that may wait, however fast runs are and however long callers do: what takes no time has no bound of its own. */
const mostWaiting = 1_000_000;

/** Knows from the batches that ran how long the next one will take: for deadlines and for the bound of the queue. */
export class Forecast {
  readonly #cost: LearnedCost;
  /** Lately measured ÷ expected, at most 1. */
  #pace = 1;

  constructor(cost: LearnedCost) {
    this.#cost = cost;
  }

  /** Feeds the cost model with the batch, after comparing the two. */
  observe({ size, runMs, outcome }: BatchRecord): void {
    if (outcome === "error") return;
    const expectedMs = this.#cost.at(size);
    // Small batches, all that is left when the rest is dropped, must show that large ones are fast again.
    if (expectedMs > 0) this.#pace += 0.3 * (Math.min(1.5, runMs / expectedMs) - this.#pace);
    this.#cost.observe(size, runMs);
  }

  /** What a batch of this size is unlikely to exceed, `s(size)` + 1.5 mean deviations; 0 before 4 batches are known. */
  likelyMs(size: number): number {
    if (this.#cost.batches < 4) return 0;
    return this.#cost.at(size) * (1 + 1.5 * this.#cost.noise) * Math.min(1, this.#pace);
  }

  /**
   * Items that can wait and still be answered within `withinMs`, by Little's law: what the slots serve in the time that
   * a last run leaves, less a tenth, at most a million. `undefined` before 4 batches are known.
   */
  queueBound(withinMs: number, slots: number, maxBatchSize: number): number | undefined {
    const { batches, fixedMs, perItemMs } = this.#cost;
    if (batches < 4) return undefined;
    // An unlimited batch may take half of the time at most.
    const size = maxBatchSize < Infinity ? maxBatchSize : Math.max(1, (withinMs / 2 - fixedMs) / perItemMs);
    const runMs = this.#cost.at(size);
    const servedPerMs = (Math.min(size, 1e9) * slots) / runMs;
    // Never less than a batch: the queue must be able to fill one.
    const bound = Math.ceil(Math.max(0.9 * servedPerMs * (withinMs - runMs), Math.min(size, 1e9)));
    return Number.isNaN(bound) ? undefined : Math.min(bound, mostWaiting);
  }
}
