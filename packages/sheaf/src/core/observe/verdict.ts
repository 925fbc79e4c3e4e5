import type { OpenCause, Verdict } from "../contract/stats.ts";

export const runsNeeded = 30;
const minGain = 1.1;
/** A range that ends here still counts as gaining nothing. */
const maxNoGain = 1.2;

/**
 * The verdict that a sample of runs supports, with the deviation that the logarithm of its speed-up may have, and the main cause
 * of that deviation.
 */
export function verdictOf(
  { batchSize, count: runs }: { readonly batchSize: number; readonly count: number },
  speedup: number,
  deviation: number,
  mainCause: OpenCause,
): Omit<Verdict, "start"> {
  const low = speedup / Math.exp(deviation);
  // A batch takes no less time than one item alone.
  const high = Math.max(speedup, Math.min(speedup * Math.exp(deviation), batchSize));
  const gains = low >= minGain ? "gains" : speedup < minGain && high <= maxNoGain && "gains-nothing";
  const verdict = (runs >= runsNeeded && gains) || "measuring";
  // A range this narrow would have decided any other gain.
  const isClose = high / low <= maxNoGain / minGain ** 0.5;
  const cause = verdict !== "measuring" ? null : runs < runsNeeded ? "few-runs" : isClose ? "close" : mainCause;
  return { verdict, batchSize, speedup, low, high, runs, cause };
}
