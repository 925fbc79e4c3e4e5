import { bucketOf, buckets, type CostModel } from "../../policies/cost-model.ts";
import type { RunTime } from "../executor.ts";
import { judge, type Judgement } from "./judge.ts";

/**
 * The one cost model of a batcher, fed once a batch. For decisions it keeps a table of geometric size buckets and the
 * weighted straight line s(0) + slope · size through them, which follow within a few batches; for the verdict on
 * batching it keeps the last runs themselves, which `judgement` weighs.
 */
export class LearnedCost implements CostModel {
  batches = 0;
  noise = 0.1;
  fixedMs = 0;
  perItemMs = 0;

  // One entry a bucket: batches seen (at most `maxPerBucket`, slowly forgotten), their mean size and mean run time.
  readonly #weight = zeros();
  readonly #size = zeros();
  readonly #runMs = zeros();
  #used = 0;
  #unfitted = 0;
  #surprises = 0;
  // The bucket of all surprises in a row, -1 where they came in several.
  #surprising = -1;

  // The last ones, a ring.
  readonly #runs: RunTime[] = [];
  #kept = 0;
  #warmUp: readonly RunTime[] = [];
  #judgement: Judgement | undefined;

  /**
   * Learns from one batch, and returns what it was expected to take, 0 where nothing was. Leave out what failed, warm-ups
   * and the sub-runs of a bisection.
   */
  observe(size: number, runMs: number): number {
    const expectedMs = this.at(size);
    if (!(size >= 1) || !(runMs >= 0) || runMs === Infinity) return expectedMs;
    const bucket = bucketOf(size);
    const learnedMs = this.batches++ < 8 ? runMs : this.#clipped(expectedMs, runMs, bucket);
    if (bucket >= this.#used) this.#used = bucket + 1;
    // The first batches, and the first of a size, pay for what later ones reuse, so they do not predict them.
    if (this.batches > coldBatches && this.#size[bucket]! > 0) {
      this.#runs[this.#kept++ % maxRuns] = { size, runMs };
      this.#judgement = undefined;
    }
    // A pause makes a run longer, never shorter: a first look that the next ones show to be three times too slow was one.
    if (this.#weight[bucket]! < 4 && learnedMs < this.#runMs[bucket]! / 3) this.#weight[bucket] = 0;
    const weight = (this.#weight[bucket] = Math.min(this.#weight[bucket]! + 1, maxPerBucket));
    this.#size[bucket]! += (size - this.#size[bucket]!) / weight;
    this.#runMs[bucket]! += (learnedMs - this.#runMs[bucket]!) / weight;
    this.#unfitted++;
    // Every batch moves a young line; an old one changes slowly, and a fit costs more than a decision.
    if (this.batches <= 64 || this.#unfitted >= 8) this.#fit();
    return expectedMs;
  }

  /** What an executor ran before the first batch. It shows a first line, supports no verdict, and teaches no decision. */
  warmedUp(runs: readonly RunTime[]): void {
    this.#warmUp = runs;
    this.#judgement = undefined;
  }

  /** What the last runs support. Judged once after each batch: it takes some tenths of a millisecond with 512 of them. */
  judgement(): Judgement {
    if (this.#judgement === undefined) {
      const first = this.#kept % maxRuns;
      const { costModel, verdict } = judge([...this.#runs.slice(first), ...this.#runs.slice(0, first)], "runs");
      this.#judgement = { costModel: costModel ?? judge(this.#warmUp, "warm-up").costModel, verdict };
    }
    return this.#judgement;
  }

  seen(size: number): number {
    return this.#weight[bucketOf(size)]!;
  }

  line(size: number): number {
    return this.fixedMs + this.perItemMs * size;
  }

  at(size: number): number {
    const lineMs = this.line(size);
    const bucket = bucketOf(size);
    const weight = this.#weight[bucket]!;
    if (weight < 0.3) return bucket < this.#used ? lineMs : Math.max(lineMs, this.#beyond(size));
    const differenceMs = this.#runMs[bucket]! - this.line(this.#size[bucket]!);
    const standardErrorMs = (this.noise * lineMs) / Math.sqrt(weight);
    return Math.abs(differenceMs) > 2 * standardErrorMs ? Math.max(lineMs / 10, lineMs + differenceMs) : lineMs;
  }

  // Larger than any batch so far: a cost that grows faster than the line goes on doing so, as over the last third of the
  // sizes seen. Otherwise a backlog would find out by one much too large batch after the other.
  #beyond(size: number): number {
    let last = this.#used - 1;
    while (last > 0 && this.#weight[last]! < 0.3) last--;
    const largest = this.#size[last]!;
    let before = last - 1;
    while (before >= 0 && (this.#weight[before]! < 0.3 || this.#size[before]! > 0.7 * largest)) before--;
    if (before < 0) return 0;
    const smaller = this.#size[before]!;
    const largestMs = this.at(largest);
    return largestMs + ((size - largest) * (largestMs - this.at(smaller))) / (largest - smaller);
  }

  // One outlier is clipped, or a single pause would pass for the cost of its size. Four in a row are the new truth.
  #clipped(predictedMs: number, runMs: number, bucket: number): number {
    if (predictedMs <= 0) return runMs;
    const errorMs = runMs - predictedMs;
    // A size not seen before may well lie off the line: it gets more tolerance, and does not count when the table is
    // checked.
    const known = this.#weight[bucket]! >= 1.5;
    const limitMs = predictedMs * (known ? Math.max(4 * this.noise, 0.25) : Math.max(8 * this.noise, 1));
    const outside = Math.abs(errorMs) > limitMs;
    if (known) this.noise += 0.05 * (Math.min(1, Math.abs(errorMs) / predictedMs) - this.noise);
    if (!outside) {
      if (known) this.#surprises = 0;
      return runMs;
    }
    if (!known) return predictedMs + Math.sign(errorMs) * limitMs;
    if (this.#surprises === 0) this.#surprising = bucket;
    else if (this.#surprising !== bucket) this.#surprising = -1;
    if (++this.#surprises < 4) return predictedMs + Math.sign(errorMs) * limitMs;
    // One young size corrects itself; an old one, or several, make all of them doubtful.
    if (this.#surprising === bucket && this.#weight[bucket]! < 8) this.#weight[bucket] = 0;
    else this.#weight.fill(0);
    this.#surprises = 0;
    this.#unfitted = Infinity;
    return runMs;
  }

  // Weighted least squares; a small ridge keeps the slope where all batches have one size.
  #fit(): void {
    const forget = this.#unfitted < 64 ? 0.999 ** this.#unfitted : 1;
    this.#unfitted = 0;
    let sum = 0;
    let sumX = 0;
    let sumY = 0;
    let sumXX = 0;
    let sumXY = 0;
    for (let i = 0; i < this.#used; i++) {
      const weight = (this.#weight[i]! *= forget);
      if (weight < 0.05) continue;
      const x = this.#size[i]!;
      const y = this.#runMs[i]!;
      sum += weight;
      sumX += weight * x;
      sumY += weight * y;
      sumXX += weight * x * x;
      sumXY += weight * x * y;
    }
    const meanX = sumX / sum;
    const meanY = sumY / sum;
    const ridge = (0.02 * meanX * meanX) / Math.min(sum, 30) + 1e-9;
    const covariance = sumXY / sum - meanX * meanY;
    const variance = sumXX / sum - meanX * meanX;
    this.perItemMs = Math.max(0, (covariance + ridge * this.perItemMs) / (variance + ridge));
    this.fixedMs = meanY - this.perItemMs * meanX;
    if (this.fixedMs < 0.05 * this.perItemMs) {
      this.fixedMs = 0;
      this.perItemMs = meanY / meanX;
    }
  }
}

// Not typed arrays: one of this size takes four times as long to make, and some batchers live for one request.
const zeros = (): number[] => new Array<number>(buckets).fill(0);

const maxPerBucket = 20;
const maxRuns = 512;
const coldBatches = 16;
