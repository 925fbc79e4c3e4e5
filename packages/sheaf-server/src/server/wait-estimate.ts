import type { BatchRecord, BatcherStats } from "sheaf";

const shortestMs = 10;
const longestMs = 60_000;
/** Before there is a cost model. */
const guessedMs = 1000;
/** A snapshot of all figures costs tens of microseconds: the cost model is taken from one in so many batches. */
const batchesBetween = 32;

/** Estimates how long waiting items take to leave a queue, from what batches cost and how many run already. */
export class WaitEstimate {
  readonly #slots: number;
  readonly #maxBatchSize: number;
  readonly #stats: () => BatcherStats;
  #batches = 0;
  #fullRunMs: number | undefined;

  constructor(limits: { readonly slots: number; readonly maxBatchSize: number }, stats: () => BatcherStats) {
    this.#slots = limits.slots;
    this.#maxBatchSize = limits.maxBatchSize;
    this.#stats = stats;
  }

  observe({ size, runMs }: BatchRecord): void {
    if (size === this.#maxBatchSize) this.#fullRunMs ??= runMs;
    if (this.#batches++ % batchesBetween !== batchesBetween - 1) return;
    const { costModel } = this.#stats();
    if (costModel !== null) this.#fullRunMs = Math.max(0, costModel.fixedMs + costModel.perItemMs * this.#maxBatchSize);
  }

  /** Arrival to result of one item more behind `waiting` items and `running` batches; undefined before it can be told. */
  latencyMs(waiting: number, running: number): number | undefined {
    if (this.#fullRunMs === undefined) return undefined;
    const batchesBefore = Math.ceil(waiting / this.#maxBatchSize) + running;
    return (batchesBefore * this.#fullRunMs) / this.#slots + this.#fullRunMs;
  }

  /** For `Retry-After`: until what waits has left, from 10 ms to a minute. */
  drainMs(waiting: number): number {
    if (this.#fullRunMs === undefined) return guessedMs;
    const ms = (Math.ceil(waiting / this.#maxBatchSize) * this.#fullRunMs) / this.#slots;
    return Math.min(longestMs, Math.max(shortestMs, Math.ceil(ms)));
  }
}
