import type { RunTime } from "../contract/executor.ts";
import type { StartGain } from "../contract/stats.ts";

/** Fewer pairs say nothing about how much they scatter. */
const minPairs = 3;
/** From here on the pairs around the middle tell how far the median may be off, whatever the stalls. */
const manyPairs = 9;
/** Student's t at 99 % for 3 to 8 pairs and the two that stand for what is usual: few pairs may agree by chance. */
const t99 = [4.6, 4.03, 3.71, 3.5, 3.36, 3.25];
/** Two more pairs, off by a tenth, count with few. */
const usualVariance = 0.1 ** 2;
const usualPairs = 2;
/** The start is a moment, and the pace of later hours may not be its own: the least deviation, as a logarithm. */
const leastDeviation = 0.05;
/** A range wider than this factor tells nobody anything. */
const widest = 4;
/** A run time of nothing has no proportion. */
const shortestMs = 1e-6;

/**
 * The gain that a warm-up measured: one item and the largest size that ran often enough, in pairs of neighbouring runs, so that a
 * machine that is slow for a while slows both of a pair. The median pair counts: of a busy machine's runs many are stalls.
 * Null where no size ran in three pairs, or where they differ too much.
 */
export function gainAtStart(runs: readonly RunTime[]): StartGain | null {
  const timesOf = (size: number): number[] => runs.filter((run) => run.size === size).map((run) => run.runMs);
  const alone = timesOf(1);
  const sizes = [...new Set(runs.map((run) => run.size))].filter((size) => size > 1).sort((a, b) => b - a);
  const batchSize = sizes.find((size) => timesOf(size).length >= minPairs);
  if (batchSize === undefined || alone.length < minPairs) return null;
  const together = timesOf(batchSize);
  const pairs = Math.min(alone.length, together.length);
  // The last ones: earlier runs of a warm-up grow from size to size and have no neighbours.
  const gains = Array.from({ length: pairs }, (_, i) =>
    Math.log((batchSize * (alone.at(i - pairs) || shortestMs)) / (together.at(i - pairs) || shortestMs)),
  ).sort((a, b) => a - b);
  const middle = (gains[Math.floor((pairs - 1) / 2)]! + gains[Math.ceil((pairs - 1) / 2)]!) / 2;
  const deviation = Math.max(leastDeviation, deviationOf(gains, middle));
  if (Math.exp(2 * deviation) > widest) return null;
  const speedup = Math.exp(middle);
  return { batchSize, speedup, low: Math.exp(middle - deviation), high: Math.exp(middle + deviation), runs: 2 * pairs };
}

/** How far the median may be off at 95 % and more. */
function deviationOf(gains: readonly number[], middle: number): number {
  const { length } = gains;
  if (length < manyPairs) {
    const squares = gains.reduce((sum, gain) => sum + (gain - middle) ** 2, usualPairs * usualVariance);
    return t99[length - minPairs]! * Math.sqrt(squares / (length - 1 + usualPairs) / length);
  }
  // The order statistics that enclose a median, by the normal approximation of the binomial distribution.
  const rank = Math.floor(length / 2 - 0.98 * Math.sqrt(length));
  return Math.max(middle - gains[rank]!, gains[length - 1 - rank]! - middle);
}
