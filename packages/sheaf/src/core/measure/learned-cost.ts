import { bucketOf, type CostModel } from "../../policies/cost-model.ts";
import type { RunTime } from "../contract/executor.ts";
import type { BatcherOptions } from "../contract/options.ts";
import type { CostEstimate, StartGain, Verdict } from "../contract/stats.ts";
import { judge, gainAtStart } from "./verdict.ts";
import { momentsOf, type LinePoint } from "./weighted-line.ts";
import { slowdownOf, type Contention } from "./contention.ts";
import type { WeighedCost } from "./weighed-cost.ts";

/** The cost and the gain of batching, as a batcher shows them. */
export interface Judgement {
  readonly costModel: CostEstimate | null;
  readonly verdict: Verdict;
}

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
  readonly perWeightMs = 0;

  // By bucket, the sizes seen so far.
  readonly #table: Seen[] = [];
  #unfitted = 0;
  #surprises = 0;
  // The bucket of all surprises in a row, -1 where they came in several.
  #surprising = -1;

  // The last ones, a ring of objects that are filled again: new ones would all outlive the young generation.
  readonly #runs: { size: number; runMs: number }[] = [];
  #kept = 0;
  #warmUp: readonly RunTime[] = [];
  /** The gain that the warm-up measured. */
  start: StartGain | null = null;
  #judgement: Judgement | undefined;

  /**
   * Learns from one batch, and returns its expected run time, 0 where there was none. Leave out what failed, warm-ups
   * and the sub-runs of a bisection.
   */
  observe(size: number, runMs: number): number {
    const expectedMs = this.at(size);
    if (!(size >= 1) || !(runMs >= 0) || runMs === Infinity) return expectedMs;
    const bucket = bucketOf(size);
    const learnedMs = this.batches++ < 8 ? runMs : this.#clipped(expectedMs, runMs, bucket);
    const seen = (this.#table[bucket] ??= { weight: 0, size: 0, runMs: 0 });
    // The first batches, and the first of a size, pay for what later ones reuse, so they do not predict them.
    if (this.batches > coldBatches && seen.size > 0) {
      const run = (this.#runs[this.#kept++ % maxRuns] ??= { size, runMs });
      run.size = size;
      run.runMs = runMs;
      this.#judgement = undefined;
    }
    // A pause makes a run longer, never shorter: a first look that the next ones show to be three times too slow was one.
    if (seen.weight < 4 && learnedMs < seen.runMs / 3) seen.weight = 0;
    seen.weight = Math.min(seen.weight + 1, maxPerBucket);
    seen.size += (size - seen.size) / seen.weight;
    seen.runMs += (learnedMs - seen.runMs) / seen.weight;
    this.#unfitted++;
    // Every batch moves a young line; an old one changes slowly, and a fit costs more than a decision.
    if (this.batches <= 64 || this.#unfitted >= 8) this.#fit();
    return expectedMs;
  }

  /** What an executor ran before the first batch. It shows a first line, supports no verdict, and teaches no decision. */
  warmedUp(runs: readonly RunTime[]): void {
    this.#warmUp = runs;
    this.start = gainAtStart(runs);
    this.#judgement = undefined;
  }

  /** What the last runs support. Judged once after each batch: it takes some tenths of a millisecond with 512 of them. */
  judgement(): Judgement {
    if (this.#judgement === undefined) {
      const first = this.#kept % maxRuns;
      const { costModel, verdict } = judge([...this.#runs.slice(first), ...this.#runs.slice(0, first)], "runs");
      this.#judgement = {
        costModel: costModel ?? judge(this.#warmUp, "warm-up").costModel,
        verdict: { ...verdict, start: this.start },
      };
    }
    return this.#judgement;
  }

  seen(size: number): number {
    return this.#table[bucketOf(size)]?.weight ?? 0;
  }

  get fixedMsAtMost(): number {
    return this.fixedMs;
  }

  of(size: number): number {
    return this.at(size);
  }

  line(size: number): number {
    return this.fixedMs + this.perItemMs * size;
  }

  at(size: number): number {
    const lineMs = this.line(size);
    const bucket = bucketOf(size);
    const seen = this.#table[bucket] ?? unseen;
    if (seen.weight < 0.3) return bucket < this.#table.length ? lineMs : Math.max(lineMs, this.#beyond(size));
    const differenceMs = seen.runMs - this.line(seen.size);
    const standardErrorMs = (this.noise * lineMs) / Math.sqrt(seen.weight);
    return Math.abs(differenceMs) > 2 * standardErrorMs ? Math.max(lineMs / 10, lineMs + differenceMs) : lineMs;
  }

  // Larger than any batch so far: a cost that grows faster than the line goes on doing so, as over the last third of the
  // sizes seen. Otherwise a backlog would find out by one much too large batch after the other.
  #beyond(size: number): number {
    const largest = this.#table.findLast(isKnown)?.size ?? 0;
    const smaller = this.#table.findLast((seen) => isKnown(seen) && seen.size <= 0.7 * largest)?.size;
    if (smaller === undefined) return 0;
    const largestMs = this.at(largest);
    return largestMs + ((size - largest) * (largestMs - this.at(smaller))) / (largest - smaller);
  }

  // One outlier is clipped, or a single pause would pass for the cost of its size. Four in a row are the new truth.
  #clipped(predictedMs: number, runMs: number, bucket: number): number {
    if (predictedMs <= 0) return runMs;
    const errorMs = runMs - predictedMs;
    // A size not seen before may well lie off the line: it gets more tolerance, and does not count when the table is
    // checked.
    const seen = this.#table[bucket] ?? unseen;
    const known = seen.weight >= 1.5;
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
    if (this.#surprising === bucket && seen.weight < 8) seen.weight = 0;
    else this.#weigh(0);
    this.#surprises = 0;
    this.#unfitted = Infinity;
    return runMs;
  }

  // A small ridge keeps the slope where all batches have one size.
  #fit(): void {
    if (this.#unfitted < 64) this.#weigh(1 - this.#unfitted / 1000);
    this.#unfitted = 0;
    const points = this.#table.filter(({ weight }) => weight >= 0.05);
    const { weights, meanSize, meanMs, variance, covariance } = momentsOf(points);
    const ridge = (0.02 * meanSize ** 2) / Math.min(weights, 30) + 1e-9;
    this.perItemMs = Math.max(0, (covariance + ridge * this.perItemMs) / (variance + ridge));
    this.fixedMs = meanMs - this.perItemMs * meanSize;
    if (this.fixedMs < 0.05 * this.perItemMs) {
      this.fixedMs = 0;
      this.perItemMs = meanMs / meanSize;
    }
  }

  #weigh(factor: number): void {
    this.#table.forEach((seen) => (seen.weight *= factor));
  }
}

/** Batches of about one size: how many count (at most `maxPerBucket`, slowly forgotten), their mean size and run time. */
interface Seen extends LinePoint {
  weight: number;
  size: number;
  runMs: number;
}

const unseen: Seen = { weight: 0, size: 0, runMs: 0 };
const isKnown = (seen = unseen): boolean => seen.weight >= 0.3;
const maxPerBucket = 20;
const maxRuns = 512;
const coldBatches = 16;

/** How fast the slowdown of decisions follows that of the runs. */
const gain = 0.1;

/**
 * The cost model of a batcher that learns how many batches may be in flight. A run is learned from as if none had slowed it down, and
 * its cost is told with the slowdown of now: otherwise what runs cost at one number would pass for their cost at another.
 */
export class CrowdedCost implements CostModel {
  readonly #alone: LearnedCost | WeighedCost;
  readonly #contention: Contention;
  #slowdown = 1;

  constructor(alone: LearnedCost | WeighedCost, contention: Contention) {
    this.#alone = alone;
    this.#contention = contention;
  }

  observe(
    size: number,
    runMs: number,
    weights: { readonly sum: number; readonly heaviest: number },
    inFlight: number = 1,
  ): number {
    const before = this.#slowdown;
    const { last } = this.#contention;
    const own = last === undefined ? 1 : slowdownOf(last, inFlight, weights.sum);
    this.#slowdown += gain * (own - before);
    return before * this.#alone.observe(size, runMs / own, weights);
  }

  warmedUp(runs: readonly RunTime[]): void {
    this.#alone.warmedUp(runs);
  }

  judgement(): Judgement {
    return this.#alone.judgement();
  }

  get batches(): number {
    return this.#alone.batches;
  }

  get noise(): number {
    return this.#alone.noise;
  }

  get fixedMs(): number {
    return this.#slowdown * this.#alone.fixedMs;
  }

  get fixedMsAtMost(): number {
    return this.#slowdown * this.#alone.fixedMsAtMost;
  }

  get perItemMs(): number {
    return this.#slowdown * this.#alone.perItemMs;
  }

  get perWeightMs(): number {
    return this.#slowdown * this.#alone.perWeightMs;
  }

  line(size: number): number {
    return this.#slowdown * this.#alone.line(size);
  }

  at(size: number): number {
    return this.#slowdown * this.#alone.at(size);
  }

  of(size: number, sum: number, heaviest: number): number {
    return this.#slowdown * this.#alone.of(size, sum, heaviest);
  }

  seen(size: number): number {
    return this.#alone.seen(size);
  }
}

/** The cost model of a batcher: by size, or by size and weight. */
export type BatchCost = LearnedCost | WeighedCost | CrowdedCost;

/** Whether weights decide which items go together: they explain run times, and no runner sorts the items itself. */
export const choosesByWeight = (
  { batchWeight }: Pick<BatcherOptions<never, never>, "batchWeight">,
  { perWeightMs }: Pick<CostModel, "perWeightMs">,
): boolean => perWeightMs > 0 && batchWeight !== "apart";
