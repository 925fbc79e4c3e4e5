import type { RunTime } from "../contract/executor.ts";
import { lineThrough, sum, weightedSum, type LinePoint, type WeightedLine } from "./least-squares.ts";
import type { WeighedRun, WeightFit } from "./weight-fit.ts";
import type { CostEstimate, Verdict, OpenCause, StartGain } from "../contract/stats.ts";

/** What runs show: their cost, and whether batching gains. */
interface RunsJudgement {
  readonly costModel: CostEstimate | null;
  readonly verdict: Omit<Verdict, "start">;
}

/** Runs before there is a judgement, and before those of one item alone count by themselves: a few may all be short. */
const minRuns = 10;
/** How far a size may lie off the straight line unnoticed, as a relative variance. */
const minMisfit = 0.05 ** 2;
/** How far one item alone may where none was seen, for each factor of e below the smallest size. */
const extrapolation = 0.2;
/** How much the machine's pace may change from stretch to stretch unnoticed. */
const paceStep = 0.07;
/** Standard errors on either side of an estimate: 95 %. */
const width = 2;
/** A run time of nothing has no proportion. */
const shortestMs = 1e-6;

/** What runs cost and what batching gains, from runs in the order in which they ended. */
export function judge(runs: readonly RunTime[], basis: CostEstimate["basis"]): RunsJudgement {
  const sample = sampleOf(runs);
  const { buckets, count, batchSize } = sample;
  const { line, misfit } = fit(buckets);
  if (!line.hasSlope || (count < minRuns && basis === "runs")) {
    const cause = count < runsNeeded ? "few-runs" : "one-size";
    const verdict = {
      verdict: "measuring",
      batchSize,
      speedup: null,
      low: null,
      high: null,
      runs: count,
      cause,
    } as const;
    return { costModel: null, verdict };
  }
  // What an item alone takes: what was seen, drawn towards the line as far as that is the surer of the two.
  const smallest = buckets[0]!;
  const isSeen = smallest.size === 1 && smallest.runs.length >= minRuns;
  const seen = isSeen ? misfit / (misfit + smallest.variance) : 0;
  const aloneShares = line.shares(1).map((share, k) => (1 - seen) * share + (k === 0 ? seen : 0));
  const minMs = smallest.runMs / smallest.size / 2;
  const aloneMs = Math.min(Math.max(weightedSum(aloneShares, buckets), minMs), smallest.runMs);
  const batchShares = buckets.map((bucket) => bucket.runs.length / count);
  const batchMs = weightedSum(batchShares, buckets);

  // How the speed-up moves with each size's run time, and with how far sizes lie off the line.
  const gains = buckets.map(({ runMs }, k) => (aloneShares[k]! / aloneMs - batchShares[k]! / batchMs) * runMs);
  const unseen = isSeen ? 0 : (extrapolation * Math.log(smallest.size)) ** 2;
  const offLine = sum(buckets, ({ runMs }, k) => (isSeen && k === 0 ? 0 : (aloneShares[k]! * runMs) / aloneMs) ** 2);
  const variances = {
    scatter: sum(buckets, (bucket, k) => gains[k]! ** 2 * bucket.variance),
    "one-size": ((1 - seen) ** 2 + offLine) * misfit + unseen,
    pace: paceVariance(sample, gains),
  };
  const [[cause]] = Object.entries(variances).sort(([, a], [, b]) => b - a) as [[keyof typeof variances, number]];
  const variance = variances.scatter + variances["one-size"] + variances.pace;
  return {
    costModel: costOf(line, sample, misfit, basis),
    verdict: verdictOf(sample, (batchSize * aloneMs) / batchMs, width * Math.sqrt(variance), cause),
  };
}

/** As `judge`, by their weights: the items of the runs one by one, as the fit has it, against the time that the runs took. */
export function judgeByWeight(weighedRuns: readonly WeighedRun[], fit: WeightFit): RunsJudgement {
  const { fixedMs, perItemMs, perWeightMs, fixedMsRange, perItemMsRange, perWeightMsRange, padded, noise, runs } = fit;
  const { length } = weighedRuns;
  let items = 0;
  let oneByOneMs = 0;
  let togetherMs = 0;
  for (const { size, weight, runMs } of weighedRuns) {
    items += size;
    oneByOneMs += (fixedMs + perItemMs) * size + perWeightMs * weight;
    togetherMs += runMs;
  }
  const offLine = ((fixedMsRange[1] - fixedMs + perItemMsRange[1] - perItemMs) * items) / oneByOneMs;
  const scatter = (width * noise) / Math.sqrt(length);
  const sample = { batchSize: items / length, count: length };
  // Weights are explained: what is left is the fit of the line, or how far runs scatter around it.
  const cause = offLine > scatter ? "one-size" : "scatter";
  return {
    costModel: {
      fixedMs,
      perItemMs,
      perWeightMs,
      fixedMsRange,
      perItemMsRange,
      perWeightMsRange,
      batchWeight: padded ? "padded" : "sum",
      runs,
      basis: "runs",
    },
    verdict: verdictOf(sample, oneByOneMs / togetherMs, Math.hypot(offLine, scatter), cause),
  };
}

/**
 * A machine's pace wanders, and looks like a difference between sizes that ran at different times. With every size in
 * every stretch this is next to nothing; where each has its time alone nothing can be said.
 */
function paceVariance({ buckets, stretches }: RunSample, gains: readonly number[]): number {
  const byStretch = new Float64Array(stretches);
  buckets.forEach(({ runs }, k) => {
    for (const run of runs) byStretch[run.stretch]! += gains[k]! / runs.length;
  });
  let before = 0;
  const wander = sum([...byStretch], (gain) => (before += gain) ** 2);
  return wander > 1 ? Infinity : paceStep ** 2 * wander;
}

/** The line through the buckets, and how far they lie off it: a relative variance. */
function fit(buckets: readonly Bucket[]): { line: WeightedLine; misfit: number } {
  let misfit = minMisfit;
  for (let round = 0; ; round++) {
    for (const bucket of buckets) bucket.weight = 1 / (bucket.runMs ** 2 * (bucket.variance + misfit));
    const line = lineThrough(buckets);
    const freedom = buckets.length - 2;
    if (round > 0 || freedom < 1) return { line, misfit };
    misfit = Math.max(
      misfit,
      sum(buckets, ({ size, runMs, variance }) => (1 - line.at(size) / runMs) ** 2 - variance) / freedom,
    );
  }
}

function costOf(
  line: WeightedLine,
  { buckets, count, batchSize }: RunSample,
  misfit: number,
  basis: CostEstimate["basis"],
): CostEstimate {
  const fixed = line.shares(0);
  const perItem = line.shares(1).map((share, k) => share - fixed[k]!);
  const range = (shares: readonly number[]): [number, number] => {
    const ms = weightedSum(shares, buckets);
    const spread =
      width * Math.sqrt(sum(buckets, (bucket, k) => (shares[k]! * bucket.runMs) ** 2 * (bucket.variance + misfit)));
    return [Math.max(0, ms - spread), Math.max(0, ms + spread)];
  };
  const fixedMs = line.at(0);
  const perItemMs = line.at(1) - fixedMs;
  // Neither part of a cost is negative.
  const meanMs = line.at(batchSize);
  return {
    fixedMs: perItemMs < 0 ? meanMs : Math.max(0, fixedMs),
    perItemMs: fixedMs < 0 ? meanMs / batchSize : Math.max(0, perItemMs),
    fixedMsRange: range(fixed),
    perItemMsRange: range(perItem),
    runs: count,
    basis,
  };
}

interface Timed {
  readonly size: number;
  runMs: number;
  /** The part of the time in which it ended: 0, 1, 2 … */
  readonly stretch: number;
}

/** Runs of about one size: their means, and the weight of these in the fit of a line. */
interface Bucket extends LinePoint {
  readonly runs: Timed[];
  runMs: number;
  /** Relative variance of `runMs`. */
  variance: number;
  weight: number;
}

/** Runs sorted by size, without stalls and without the drift of the machine's pace. */
interface RunSample {
  /** By size, the smallest first. */
  readonly buckets: readonly Bucket[];
  /** All runs in them, and their mean size. */
  readonly count: number;
  readonly batchSize: number;
  readonly stretches: number;
}

/** A run this many times as long as others of its size is a stall, unless more than three, and a tenth of them, take so long. */
const stall = 8;
const fewStalls = 3;
/** Parts of the time in which the machine may have a pace of its own. */
const maxStretches = 12;
const runsPerStretch = 8;
/** A size's own scatter, and a stretch's own pace, are drawn towards those of all as by so many runs. */
const priorRuns = 4;
/** On a clock without noise. */
const minVariance = 1e-6;

/** From runs in the order in which they ended. */
function sampleOf(runs: readonly RunTime[]): RunSample {
  const stretches = Math.max(1, Math.min(maxStretches, Math.floor(runs.length / runsPerStretch)));
  const bySize: Timed[][] = [];
  runs.forEach(({ size, runMs }, at) => {
    const run = { size, runMs: Math.max(shortestMs, runMs), stretch: Math.floor((at * stretches) / runs.length) };
    (bySize[Math.round(2 * Math.log2(size))] ??= []).push(run);
  });
  const buckets: Bucket[] = [];
  bySize.forEach((group) => {
    const { length } = group;
    const longest = group.map((run) => run.runMs).sort((a, b) => b - a);
    const longMs = longest[Math.min(length - 1, Math.max(fewStalls, Math.floor(0.1 * length)))]!;
    const kept = group.filter((run) => run.runMs <= stall * longMs);
    const size = sum(kept, (run) => run.size) / kept.length;
    buckets.push({ runs: kept, size, runMs: meanMs(kept), variance: 0, weight: 0 });
  });
  evenOutPace(buckets, stretches);
  const count = sum(buckets, (bucket) => bucket.runs.length);
  const batchSize = count && sum(buckets, (bucket) => bucket.size * bucket.runs.length) / count;
  // Half of the stretches' paces pass for freedom that the sizes have lost.
  const scatter = sum(buckets, squares) / Math.max(1, count - buckets.length - stretches / 2);
  for (const bucket of buckets) {
    // Of mixed items, small batches scatter more than large ones: few of them may all be of one kind.
    const prior = priorRuns * scatter * Math.max(1, batchSize / bucket.size);
    const { length } = bucket.runs;
    bucket.variance = minVariance + (prior + squares(bucket)) / (priorRuns + length - 1) / length;
  }
  return { buckets, count, batchSize, stretches };
}

/** Where all sizes take longer for a while, it is the machine. */
function evenOutPace(buckets: readonly Bucket[], stretches: number): void {
  const excess = new Float64Array(stretches);
  const counts = new Float64Array(stretches).fill(priorRuns);
  for (const { runs, runMs } of buckets)
    for (const run of runs) {
      excess[run.stretch]! += run.runMs / runMs - 1;
      counts[run.stretch]!++;
    }
  for (const bucket of buckets) {
    for (const run of bucket.runs) run.runMs /= 1 + excess[run.stretch]! / counts[run.stretch]!;
    bucket.runMs = meanMs(bucket.runs);
  }
}

const squares = ({ runs, runMs }: Bucket): number => sum(runs, (run) => (run.runMs / runMs - 1) ** 2);

const meanMs = (runs: readonly Pick<RunTime, "runMs">[]): number =>
  Math.max(shortestMs, sum(runs, (run) => run.runMs) / runs.length);

const runsNeeded = 30;
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
