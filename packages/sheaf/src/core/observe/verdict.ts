import type { Verdict } from "../contract/stats.ts";

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
