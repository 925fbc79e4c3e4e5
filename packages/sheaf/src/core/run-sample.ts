import { bucketOf } from "../policies/cost-model.ts";
import type { RunTime } from "./executor.ts";

interface Timed {
  readonly size: number;
  runMs: number;
  /** The part of the time in which it ended, 0, 1, 2 … */
  readonly stretch: number;
}

/** Runs of about one size. */
export interface Bucket {
  readonly runs: Timed[];
  /** Means. */
  readonly size: number;
  runMs: number;
  /** Relative variance of `runMs`. */
  variance: number;
  /** In the fit of the line. */
  weight: number;
}

/** A run this many times as long as nine in ten of its size is a stall, unless more than three of the size take so long. */
const stall = 6;
const fewStalls = 3;
/** Parts of the time in which the machine may have a pace of its own. */
const mostStretches = 12;
const runsPerStretch = 8;
/** A size's own scatter is drawn towards that of all sizes, which counts as many runs. */
const priorRuns = 4;
/** On a clock without noise. */
const leastVariance = 1e-6;
/** Run times of nothing would have no logarithm. */
const shortestMs = 1e-6;

/** Runs in the order in which they ended, sorted by size, without stalls and without the drift of the machine's pace. */
export class RunSample {
  readonly buckets: Bucket[] = [];
  /** Runs in buckets; and runs of sizes too rare to count by themselves, with their items. */
  runs = 0;
  rareRuns = 0;
  batchSize = 0;
  readonly stretches: number;
  /** Variance of the machine's pace between stretches, relative. */
  paceVariance = 0;
  #rareItems = 0;
  readonly #runsOfStretch: Float64Array;

  /** A size counts by itself from `leastOfSize` runs on. */
  constructor(runs: readonly RunTime[], leastOfSize: number) {
    this.stretches = Math.max(1, Math.min(mostStretches, Math.floor(runs.length / runsPerStretch)));
    this.#runsOfStretch = new Float64Array(this.stretches);
    const bySize = new Map<number, Timed[]>();
    runs.forEach(({ size, runMs }, at) => {
      const run = {
        size,
        runMs: Math.max(shortestMs, runMs),
        stretch: Math.floor((at * this.stretches) / runs.length),
      };
      const group = bySize.get(bucketOf(size));
      if (group === undefined) bySize.set(bucketOf(size), [run]);
      else group.push(run);
    });
    const groups = [];
    const relative = [];
    let group: Timed[] = [];
    for (const bucket of [...bySize.keys()].sort((a, b) => a - b)) {
      // Sizes too rare to count by themselves do so together, as far as they are alike.
      const next = bySize.get(bucket)!;
      if (group.length > 0 && next[0]!.size > 1.5 * group[0]!.size) group = this.#rare(group);
      group.push(...next);
      if (group.length < leastOfSize) continue;
      const sorted = group.map(({ runMs }) => runMs).sort((a, b) => a - b);
      const middle = rank(sorted, 0.5);
      const long = sorted[sorted.length - 1 - Math.max(fewStalls, Math.floor(0.1 * sorted.length))] ?? 0;
      groups.push({ group, middle, long });
      for (const runMs of sorted) relative.push(runMs / middle);
      group = [];
    }
    this.#rare(group);
    const common = rank(relative.sort((a, b) => a - b), 0.9); // prettier-ignore
    let items = this.#rareItems;
    for (const { group, middle, long } of groups) {
      const kept = group.filter(({ runMs }) => runMs <= stall * Math.max(common * middle, long));
      const size = mean(kept, (run) => run.size);
      items += size * kept.length;
      this.runs += kept.length;
      this.buckets.push({ runs: kept, size, runMs: mean(kept, (run) => run.runMs), variance: 0, weight: 0 });
    }
    if (this.runs + this.rareRuns > 0) this.batchSize = items / (this.runs + this.rareRuns);
    this.#evenOutPace(this.#scatter(0));
    // Half of the stretches' paces pass for freedom that the sizes have lost.
    this.#setVariances(this.#scatter(this.stretches / 2));
  }

  #rare(group: readonly Timed[]): Timed[] {
    this.rareRuns += group.length;
    for (const { size } of group) this.#rareItems += size;
    return [];
  }

  /** Mean size of the rare runs. */
  get rareSize(): number {
    return this.rareRuns > 0 ? this.#rareItems / this.rareRuns : 1;
  }

  /** Variance of one run about the mean of its size, relative, over all sizes. */
  #scatter(lostFreedom: number): number {
    const squares = this.buckets.reduce((sum, bucket) => sum + squaresOf(bucket), 0);
    return squares / Math.max(1, this.runs - this.buckets.length - lostFreedom);
  }

  #setVariances(scatter: number): void {
    for (const bucket of this.buckets) {
      // Of mixed items, small batches scatter more than large ones: few of them may all be of one kind.
      const prior = priorRuns * scatter * Math.max(1, this.batchSize / bucket.size);
      const count = bucket.runs.length;
      bucket.variance = leastVariance + (prior + squaresOf(bucket)) / (priorRuns + count - 1) / count;
    }
  }

  /** Where all sizes take longer for a while, it is the machine. */
  #evenOutPace(scatter: number): void {
    const pace = new Float64Array(this.stretches);
    for (const { runs, runMs } of this.buckets) {
      for (const run of runs) {
        pace[run.stretch]! += run.runMs / runMs - 1;
        this.#runsOfStretch[run.stretch]!++;
      }
    }
    for (let stretch = 0; stretch < this.stretches; stretch++) {
      const count = this.#runsOfStretch[stretch]!;
      if (count === 0) continue;
      this.paceVariance += ((pace[stretch]! / count) ** 2 - scatter / count) / this.stretches;
      pace[stretch]! /= count + 4;
    }
    this.paceVariance = Math.max(0, this.paceVariance);
    for (const bucket of this.buckets) {
      for (const run of bucket.runs) run.runMs /= 1 + pace[run.stretch]!;
      bucket.runMs = mean(bucket.runs, ({ runMs }) => runMs);
    }
  }

  /**
   * Relative variance of a figure that moves by `gains[k]` where all runs of bucket k take 1 % longer: by what runs of one
   * size differ in, and by the pace of stretches in which some sizes ran more often than others.
   */
  varianceOf(gains: readonly number[], leastPace: number): number {
    const stretches = new Float64Array(this.stretches);
    const paces = new Float64Array(this.stretches);
    const left = new Float64Array(this.stretches);
    let independent = 0;
    this.buckets.forEach(({ runs, runMs, variance }, k) => {
      const gain = gains[k]! / runs.length;
      independent += gains[k]! ** 2 * variance;
      for (const run of runs) {
        stretches[run.stretch]! += gain * (run.runMs / runMs - 1);
        paces[run.stretch]! += gain;
      }
    });
    // What is left of a stretch's pace after it has been evened out: all of it where each stretch has a size of its own.
    for (const { runs } of this.buckets) {
      const share = runs.reduce((sum, { stretch }) => sum + paces[stretch]! / this.#runsOfStretch[stretch]!, 0);
      for (const { stretch } of runs) left[stretch]! += share / runs.length;
    }
    // Runs that follow each other may be long together: their sum over a stretch then scatters more than they do.
    const together = (sumOfSquares(stretches) * this.stretches) / Math.max(1, this.stretches - 1);
    return Math.max(independent, together) + (leastPace ** 2 + this.paceVariance) * sumOfSquares(left);
  }
}

const rank = (sorted: readonly number[], share: number): number => sorted[Math.floor(share * (sorted.length - 1))] ?? 0;

const mean = <T>(values: readonly T[], of: (value: T) => number): number =>
  values.reduce((sum, value) => sum + of(value), 0) / values.length;

const squaresOf = ({ runs, runMs }: Bucket): number => runs.reduce((sum, run) => sum + (run.runMs / runMs - 1) ** 2, 0);

const sumOfSquares = (values: Float64Array): number => values.reduce((sum, value) => sum + value * value, 0);
