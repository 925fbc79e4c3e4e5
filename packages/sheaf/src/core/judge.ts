import type { RunTime } from "./executor.ts";
import { RunSample, type Bucket } from "./run-sample.ts";
import { verdictOf, type CostEstimate, type Verdict } from "./verdict.ts";
import { WeightedLine, weightedSum } from "./weighted-line.ts";

export interface Judgement {
  readonly costModel: CostEstimate | null;
  readonly verdict: Verdict;
}

/** Runs before a size counts by itself, and before an item alone does: of mixed items a few may all be short. */
const leastOfSize = 5;
const leastAlone = 10;
/** How far a size may lie off the straight line unnoticed, as a share of its run time. */
const leastMisfit = 0.05;
/** The same of an item alone where none was seen, for each factor of e below the smallest size. */
const extrapolation = 0.2;
/** How much the machine's pace may change from stretch to stretch unnoticed. */
const leastPace = 0.1;
/** Standard errors on either side of an estimate: 95 %. */
const width = 2;

/** What runs cost and what batching gains, from runs in the order in which they ended. */
export function judge(runs: readonly RunTime[], basis: CostEstimate["basis"]): Judgement {
  const sample = new RunSample(runs, basis === "runs" ? leastOfSize : 1);
  const { buckets, batchSize, rareRuns } = sample;
  const count = sample.runs + rareRuns;
  const verdict: Verdict = { verdict: "measuring", batchSize, speedup: null, low: null, high: null, runs: count };
  if (sample.runs < 0.7 * count || count === 0) return { costModel: null, verdict };
  const { line, misfit } = fit(buckets);
  const alone = buckets.findIndex(({ size, runs: { length } }) => size === 1 && length >= leastAlone);
  const costModel = line.hasSlope ? costOf(line, sample, misfit, basis) : null;
  if (!line.hasSlope && alone < 0) return { costModel, verdict };

  // What an item alone takes: what was seen, drawn towards the line as far as the line is the surer of the two.
  const shares = line.shares(1);
  const seen = alone < 0 ? 0 : line.hasSlope ? misfit / (misfit + buckets[alone]!.variance) : 1;
  const aloneShares = shares.map((share, k) => (1 - seen) * share + (k === alone ? seen : 0));
  const smallest = buckets.reduce((least, bucket) => (bucket.size < least.size ? bucket : least));
  const aloneMs = Math.min(
    Math.max(weightedSum(aloneShares, buckets), smallest.runMs / smallest.size / 2),
    smallest.runMs,
  );
  // What a batch takes: what was seen; of rare sizes, what the line says.
  const rare = line.shares(sample.rareSize);
  const batchShares = buckets.map((bucket, k) => (bucket.runs.length + rareRuns * rare[k]!) / count);
  const batchMs = weightedSum(batchShares, buckets);

  const gains = buckets.map(({ runMs }, k) => (aloneShares[k]! / aloneMs - batchShares[k]! / batchMs) * runMs);
  let offLine = (1 - seen) ** 2 * misfit;
  buckets.forEach(({ runMs }, k) => {
    if (k !== alone) offLine += ((aloneShares[k]! * runMs) / aloneMs) ** 2 * misfit;
  });
  if (alone < 0) offLine += (extrapolation * Math.log(smallest.size)) ** 2;
  const deviation = Math.sqrt(sample.varianceOf(gains, leastPace) + offLine);
  const speedup = (batchSize * aloneMs) / batchMs;
  return { costModel, verdict: verdictOf(batchSize, count, speedup, Math.exp(width * deviation)) };
}

/** The line through the buckets, and how far they lie off it beyond their own scatter: a relative variance. */
function fit(buckets: Bucket[]): { line: WeightedLine; misfit: number } {
  let misfit = leastMisfit ** 2;
  for (let round = 0; ; round++) {
    for (const bucket of buckets) bucket.weight = 1 / (bucket.runMs ** 2 * (bucket.variance + misfit));
    const line = new WeightedLine(buckets);
    if (round === 2 || buckets.length < 3) return { line, misfit };
    // DerSimonian and Laird's moment estimate of a variance between groups.
    let squares = 2 - buckets.length;
    let certainty = 0;
    let most = 0;
    for (const { size, runMs, variance } of buckets) {
      squares += (1 - line.at(size) / runMs) ** 2 / variance;
      certainty += 1 / variance;
      most = Math.max(most, 1 / variance);
    }
    misfit = Math.max(leastMisfit ** 2, squares / Math.max(certainty - most, 0.3 * certainty));
  }
}

function costOf(
  line: WeightedLine,
  { buckets, runs, batchSize }: RunSample,
  misfit: number,
  basis: CostEstimate["basis"],
): CostEstimate {
  // prettier-ignore
  const fixed = line.shares(0);
  const perItem = line.shares(1).map((share, k) => share - fixed[k]!);
  const spread = (shares: readonly number[]): number =>
    width * Math.sqrt(buckets.reduce((sum, { runMs, variance }, k) => sum + (shares[k]! * runMs) ** 2 * (variance + misfit), 0)); // prettier-ignore
  const range = (ms: number, spreadMs: number): [number, number] => [Math.max(0, ms - spreadMs), Math.max(0, ms + spreadMs)]; // prettier-ignore
  const fittedMs = weightedSum(fixed, buckets);
  const slopeMs = weightedSum(perItem, buckets);
  // Neither part of a cost is negative.
  const perItemMs = fittedMs < 0 ? line.at(batchSize) / batchSize : Math.max(0, slopeMs);
  const fixedMs = slopeMs < 0 ? line.at(batchSize) : Math.max(0, fittedMs);
  let residual = 0;
  let total = 0;
  const meanMs = buckets.reduce((sum, bucket) => sum + bucket.runs.length * bucket.runMs, 0) / runs;
  for (const bucket of buckets) {
    for (const { size, runMs } of bucket.runs) {
      residual += (runMs - fixedMs - perItemMs * size) ** 2;
      total += (runMs - meanMs) ** 2;
    }
  }
  return {
    fixedMs,
    perItemMs,
    fixedMsRange: range(fittedMs, spread(fixed)),
    perItemMsRange: range(slopeMs, spread(perItem)),
    r2: total > 0 ? Math.max(0, 1 - residual / total) : 1,
    runs,
    basis,
  };
}
