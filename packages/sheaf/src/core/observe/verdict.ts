import type { RunTime } from "../contract/executor.ts";
import type { OpenCause, StartGain, Verdict } from "../contract/stats.ts";
import { sum } from "./weighted-line.ts";

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

/** Fewer say nothing about how much they scatter. */
const fewestRounds = 3;
/** From here on the rounds around the middle tell how far the median may be off, whatever the stalls. */
const manyRounds = 9;
/** Student's t at 99 % for 3 to 8 rounds and the two usual ones: few may agree by chance. */
const t99 = [4.6, 4.03, 3.71, 3.5, 3.36, 3.25];
/** Two more rounds, off by a tenth, count with few. */
const usualVariance = 0.1 ** 2;
const usualRounds = 2;
/** The start is a moment, and the pace of later hours may not be its own: the least deviation, as a logarithm. */
const leastDeviation = 0.05;
/** A range wider than this factor tells nobody anything. */
const widest = 6;
/** A run time of nothing has no proportion. */
const shortestMs = 1e-6;

/**
 * The gain that a warm-up measured, in rounds: some runs of one item, and right after them some of one larger size. The times of a
 * round are means, because on a busy machine a long run is interrupted by its share while a short one is spared or pays for
 * many; the median round counts, because a machine that is slow for a while slows all of a round. Null without three rounds of one
 * size, or where they differ too much.
 */
export function gainAtStart(runs: readonly RunTime[]): StartGain | null {
  const rounds = roundsOf(runs);
  const sizes = [...new Set(rounds.map(({ batchSize }) => batchSize))].sort((a, b) => b - a);
  const batchSize = sizes.find((size) => rounds.filter((round) => round.batchSize === size).length >= fewestRounds);
  if (batchSize === undefined) return null;
  const compared = rounds.filter((round) => round.batchSize === batchSize);
  const gains = compared.map(({ aloneMs, togetherMs }) => Math.log((batchSize * aloneMs) / togetherMs));
  gains.sort((a, b) => a - b);
  const { length } = gains;
  const middle = (gains[Math.floor((length - 1) / 2)]! + gains[Math.ceil((length - 1) / 2)]!) / 2;
  const deviation = Math.max(leastDeviation, deviationOf(gains, middle));
  if (Math.exp(2 * deviation) > widest) return null;
  return {
    batchSize,
    speedup: Math.exp(middle),
    low: Math.exp(middle - deviation),
    high: Math.exp(middle + deviation),
    runs: sum(compared, (round) => round.runs),
  };
}

interface Round {
  readonly batchSize: number;
  /** Means. */
  readonly aloneMs: number;
  readonly togetherMs: number;
  readonly runs: number;
}

/** Runs of one item that are followed by runs of another size. */
function roundsOf(runs: readonly RunTime[]): Round[] {
  const rounds: Round[] = [];
  let alone: RunTime[] = [];
  for (let at = 0; at < runs.length;) {
    const { size } = runs[at]!;
    let end = at;
    while (end < runs.length && runs[end]!.size === size) end++;
    const same = runs.slice(at, end);
    if (size > 1 && alone.length > 0)
      rounds.push({
        batchSize: size,
        aloneMs: meanMs(alone),
        togetherMs: meanMs(same),
        runs: alone.length + same.length,
      });
    alone = size === 1 ? same : [];
    at = end;
  }
  return rounds;
}

const meanMs = (runs: readonly RunTime[]): number => Math.max(shortestMs, sum(runs, (run) => run.runMs) / runs.length);

/** How far the median may be off at 95 % and more. */
function deviationOf(gains: readonly number[], middle: number): number {
  const { length } = gains;
  if (length < manyRounds) {
    const squares = gains.reduce((sum, gain) => sum + (gain - middle) ** 2, usualRounds * usualVariance);
    return t99[length - fewestRounds]! * Math.sqrt(squares / (length - 1 + usualRounds) / length);
  }
  // The order statistics that enclose a median, by the normal approximation of the binomial distribution.
  const rank = Math.floor(length / 2 - 0.98 * Math.sqrt(length));
  return Math.max(middle - gains[rank]!, gains[length - 1 - rank]! - middle);
}
