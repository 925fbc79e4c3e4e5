import type { RunTime } from "../contract/executor.ts";
import { sum, type LinePoint } from "./weighted-line.ts";

interface Timed {
  readonly size: number;
  runMs: number;
  /** The part of the time in which it ended: 0, 1, 2 … */
  readonly stretch: number;
}

/** Runs of about one size: their means, and the weight of these in the fit of a line. */
export interface Bucket extends LinePoint {
  readonly runs: Timed[];
  runMs: number;
  /** Relative variance of `runMs`. */
  variance: number;
  weight: number;
}

/** Runs sorted by size, without stalls and without the drift of the machine's pace. */
export interface RunSample {
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
/** Run times of nothing have no proportions. */
const shortestMs = 1e-6;

/** From runs in the order in which they ended. */
export function sampleOf(runs: readonly RunTime[]): RunSample {
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

const meanMs = (runs: readonly Timed[]): number => sum(runs, (run) => run.runMs) / runs.length;

const squares = ({ runs, runMs }: Bucket): number => sum(runs, (run) => (run.runMs / runMs - 1) ** 2);
