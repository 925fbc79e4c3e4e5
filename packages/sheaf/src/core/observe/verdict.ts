/** What batches cost: `fixedMs + perItemMs · size`, in milliseconds, with the 95 % range of each part. */
export interface CostEstimate {
  readonly fixedMs: number;
  readonly perItemMs: number;
  readonly fixedMsRange: readonly [low: number, high: number];
  readonly perItemMsRange: readonly [low: number, high: number];
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
  /** Batches it rests on: the last 512, without the first 16 of all, the first of each size, and stalls. */
  readonly runs: number;
}

const runsNeeded = 30;
const minGain = 1.1;
/** A range that ends here still counts as gaining nothing. */
const maxNoGain = 1.2;

/** The verdict that a sample of runs supports, with the deviation that the logarithm of its speed-up may have. */
export function verdictOf(
  { batchSize, count: runs }: { readonly batchSize: number; readonly count: number },
  speedup: number,
  deviation: number,
): Verdict {
  const low = speedup / Math.exp(deviation);
  // A batch takes no less time than one item alone.
  const high = Math.max(speedup, Math.min(speedup * Math.exp(deviation), batchSize));
  const gains = low >= minGain ? "gains" : speedup < minGain && high <= maxNoGain && "gains-nothing";
  return { verdict: (runs >= runsNeeded && gains) || "measuring", batchSize, speedup, low, high, runs };
}
