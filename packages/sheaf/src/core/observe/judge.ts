import type { RunTime } from "../contract/executor.ts";
import { sampleOf, type Bucket, type RunSample } from "./run-sample.ts";
import { runsNeeded, verdictOf } from "./verdict.ts";
import { lineThrough, sum, weightedSum, type WeightedLine } from "./weighted-line.ts";
import type { CostEstimate, Verdict } from "../contract/stats.ts";

interface SampleJudgement {
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

/** What runs cost and what batching gains, from runs in the order in which they ended. */
export function judge(runs: readonly RunTime[], basis: CostEstimate["basis"]): SampleJudgement {
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
