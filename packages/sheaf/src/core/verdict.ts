/** What batches cost: `fixedMs + perItemMs · size`, in milliseconds, with the 95 % range of each part. */
export interface CostEstimate {
  readonly fixedMs: number;
  readonly perItemMs: number;
  readonly fixedMsRange: readonly [low: number, high: number];
  readonly perItemMsRange: readonly [low: number, high: number];
  /** Share of the variance of run times that the line explains, 0…1. */
  readonly r2: number;
  /** Runs it rests on. */
  readonly runs: number;
  /** `"warm-up"`: so far only the executor's warm-up supports it, whose items are not the callers'. */
  readonly basis: "runs" | "warm-up";
}

/** What batching gains, as far as recent batches support it. */
export interface Verdict {
  /** `"gains"` (at least 1.1 times) and `"gains-nothing"` (less) only where the whole range supports it. */
  readonly verdict: "measuring" | "gains" | "gains-nothing";
  /** Mean size of the batches it rests on; 0 without any. */
  readonly batchSize: number;
  /** Items × the run time of an item alone ÷ the time their batches ran; null while nothing supports an estimate. */
  readonly speedup: number | null;
  /** 95 % range of `speedup`. */
  readonly low: number | null;
  readonly high: number | null;
  /** Batches it rests on: of the last 512, without stalls and without the first of each size. */
  readonly runs: number;
}

const runsNeeded = 40;
const leastGain = 1.1;
/** A range that ends here still says "hardly more than nothing". */
const mostOfNothing = 1.2;

/** The verdict that a range supports. */
export function verdictOf(batchSize: number, runs: number, speedup: number, spread: number): Verdict {
  const low = speedup / spread;
  // A batch takes no less time than one item alone.
  const high = Math.max(speedup, Math.min(speedup * spread, batchSize));
  const gains = low >= leastGain ? "gains" : speedup < leastGain && high <= mostOfNothing ? "gains-nothing" : undefined;
  return { verdict: (runs >= runsNeeded && gains) || "measuring", batchSize, speedup, low, high, runs };
}
