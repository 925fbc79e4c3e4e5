import { bucketOf, type CostModel } from "../../policies/cost-model.ts";
import type { BatchRecord } from "../../policies/policy.ts";
import type { RunTime } from "../contract/executor.ts";
import type { BatcherOptions } from "../contract/options.ts";
import type { CostEstimate, StartGain, Verdict } from "../contract/stats.ts";
import { slowdownOf, type Contention, type ContentionFit } from "./contention.ts";
import { momentsOf, type LinePoint } from "./least-squares.ts";
import { gainAtStart, judge, judgeByWeight } from "./verdict.ts";
import { WeightCost, type WeighedRun } from "./weight-fit.ts";

/** The cost and the gain of batching, as a batcher shows them. */
export interface Judgement {
  readonly costModel: CostEstimate | null;
  readonly verdict: Verdict;
}

/** The most runs that are kept: the verdict is on all of them, weights are fitted to the last ones. */
const maxRuns = 512;
/** The first runs, and the first of a size, pay for what later ones reuse. */
const coldRuns = 16;
/** Weights explain cold runs too, but the first. */
const coldWeighedRuns = 2;
/** How fast the slowdown of decisions follows that of the runs. */
const gain = 0.1;

interface KeptRun extends WeighedRun {
  /** Runs in flight while it ran, itself included. */
  inFlight: number;
  /** It supports no verdict. */
  isCold: boolean;
}

/**
 * The one cost model of a batcher, fed once a run. For decisions it keeps a table by size, which follows within a few runs; with
 * `weigh`, a fit by size and weight, which replaces the table while weights explain run times better; and with a learned number of
 * batches in flight, the slowdown of now. What it learns is what runs would take alone: otherwise what they cost at one number in
 * flight would pass for their cost at another. For the verdict on batching it keeps the last runs themselves.
 */
export class LearnedCost implements CostModel {
  /** The gain that the warm-up measured. */
  start: StartGain | null = null;
  readonly #sizes: SizeTable = new SizeTable();
  readonly #weights: WeightCost | undefined;
  readonly #contention: Contention | undefined;
  #slowdown = 1;
  /** The fit behind the slowdowns of all sizes. */
  #fitOfSizes: ContentionFit | undefined;
  /** Recent measured ÷ expected, at most 1. */
  #pace = 1;
  /** The last ones, a ring of objects that are filled again: new ones would all outlive the young generation. */
  readonly #runs: KeptRun[] = [];
  #kept = 0;
  #warmUp: readonly RunTime[] = [];
  #judgement: Judgement | undefined;

  /** `weights`: items have weights, whose way of counting is learned, or each costs its own, whatever runs look like. */
  constructor({
    weights,
    contention,
  }: { readonly weights?: "learned" | "apart" | undefined; readonly contention?: Contention | undefined } = {}) {
    this.#weights = weights && new WeightCost(weights === "apart");
    this.#contention = contention;
  }

  /** Learns from a run, and compares it with what was expected of it. */
  learn({
    size,
    runMs,
    outcome,
    inFlight,
    weights,
  }: Pick<BatchRecord, "size" | "runMs" | "outcome" | "inFlight" | "weights">): void {
    if (outcome !== "ok") return;
    const expectedMs = this.observe(size, runMs, weights, inFlight);
    // When all else is dropped, only small batches are left to show that large ones are fast again.
    if (expectedMs > 0) this.#pace += 0.3 * (Math.min(1.5, runMs / expectedMs) - this.#pace);
  }

  /** A run is unlikely to take this many times its expected time: 1.5 mean deviations more; 0 before 4 batches. */
  get caution(): number {
    return this.cautionAt(this.noise);
  }

  /** The same for this mean deviation. */
  cautionAt(noise: number): number {
    return this.batches < 4 ? 0 : Math.max(0, 1 + 1.5 * noise) * Math.min(1, this.#pace);
  }

  /**
   * Learns from one run, and returns its expected time, 0 where there was none. Leave out what failed and warm-ups. `inFlight`: runs
   * in flight on average while it ran, itself included.
   */
  observe(
    size: number,
    runMs: number,
    weights: { readonly sum: number; readonly heaviest: number } = { sum: size, heaviest: 1 },
    inFlight: number = 1,
  ): number {
    const slowdown = this.#slowdown;
    const last = this.#contention?.last;
    const own = last === undefined ? 1 : slowdownOf(last, inFlight, weights.sum);
    this.#slowdown += gain * (own - slowdown);
    if (last !== undefined && last !== this.#fitOfSizes) this.#sizes.divideBy((this.#fitOfSizes = last));
    return slowdown * this.#learn(size, runMs, weights, inFlight, own);
  }

  #learn(
    size: number,
    measuredMs: number,
    { sum, heaviest }: { readonly sum: number; readonly heaviest: number },
    inFlight: number,
    slowdown: number,
  ): number {
    const runMs = measuredMs / slowdown;
    const sizes = this.#sizes;
    const bySizeMs = sizes.at(size);
    const expectedMs = this.#weights?.of(size, sum, heaviest) ?? bySizeMs;
    if (!(size >= 1) || !(runMs >= 0) || runMs === Infinity) return expectedMs;
    const isCold = sizes.batches < coldRuns || !sizes.hasSeen(size);
    sizes.learn(size, runMs, bySizeMs, sum, inFlight, slowdown);
    const isWeighed = this.#weights !== undefined && sizes.batches > coldWeighedRuns;
    if (!isCold || isWeighed) this.#keep(size, sum, heaviest, measuredMs, isCold, inFlight);
    if (isWeighed) this.#weights.learn(size, sum, heaviest, runMs, expectedMs, (count) => this.#last(count));
    return expectedMs;
  }

  #keep(size: number, weight: number, heaviest: number, runMs: number, isCold: boolean, inFlight: number): void {
    const run = (this.#runs[this.#kept++ % maxRuns] ??= {
      size,
      weight,
      heaviest,
      runMs,
      isCold,
      inFlight,
    });
    run.size = size;
    run.weight = weight;
    run.heaviest = heaviest;
    run.runMs = runMs;
    run.isCold = isCold;
    run.inFlight = inFlight;
    this.#judgement = undefined;
  }

  /** The last `count` runs, the oldest first, with what each would have taken alone. */
  #last(count: number): KeptRun[] {
    const first = this.#kept % maxRuns;
    const inOrder = this.#kept > maxRuns ? [...this.#runs.slice(first), ...this.#runs.slice(0, first)] : this.#runs;
    const runs = inOrder.slice(Math.max(0, inOrder.length - count));
    const fit = this.#contention?.last;
    if (fit === undefined) return runs;
    return runs.map((run) => ({ ...run, runMs: run.runMs / slowdownOf(fit, run.inFlight, run.weight) }));
  }

  /** What an executor ran before the first batch. It shows a first line, supports no verdict, and teaches no decision. */
  warmedUp(runs: readonly RunTime[]): void {
    this.#warmUp = runs;
    this.start = gainAtStart(runs);
    this.#judgement = undefined;
  }

  /** What the last runs support. Judged once after each batch: it takes some tenths of a millisecond with 512 of them. */
  judgement(): Judgement {
    return (this.#judgement ??= this.#judge());
  }

  #judge(): Judgement {
    const weights = this.#weights;
    const fit = weights?.fit;
    const { costModel, verdict } =
      fit === undefined
        ? judge(
            this.#last(maxRuns).filter(({ isCold }) => !isCold),
            "runs",
          )
        : judgeByWeight(this.#last(weights!.runs), fit);
    const shown = costModel ?? judge(this.#warmUp, "warm-up").costModel;
    const weightless = weights !== undefined && fit === undefined;
    return {
      costModel: shown && weightless ? { ...shown, perWeightMs: null } : shown,
      verdict: { ...verdict, start: this.start },
    };
  }

  get batches(): number {
    return this.#sizes.batches;
  }

  get noise(): number {
    return this.#weights?.fit?.noise ?? this.#sizes.noise;
  }

  get fixedMs(): number {
    return this.#slowdown * (this.#weights?.fit ?? this.#sizes).fixedMs;
  }

  get fixedMsAtMost(): number {
    return this.#slowdown * (this.#weights?.fit?.fixedMsRange[1] ?? this.#sizes.fixedMs);
  }

  get perItemMs(): number {
    return this.#slowdown * (this.#weights?.perItemMs ?? this.#sizes.perItemMs);
  }

  get perWeightMs(): number {
    return this.#slowdown * (this.#weights?.fit?.perWeightMs ?? 0);
  }

  line(size: number): number {
    return this.#slowdown * (this.#weights?.line(size) ?? this.#sizes.line(size));
  }

  at(size: number): number {
    return this.#slowdown * (this.#weights?.line(size) ?? this.#sizes.at(size));
  }

  of(size: number, sum: number, heaviest: number): number {
    return this.#slowdown * (this.#weights?.of(size, sum, heaviest) ?? this.#sizes.at(size));
  }

  seen(size: number): number {
    return this.#sizes.seen(size);
  }
}

/**
 * Run times by size: geometric buckets, and the weighted straight line s(0) + slope · size through them. Steps of a kernel or of
 * padding are no line, so a size that clearly differs from it counts by itself.
 */
class SizeTable {
  batches = 0;
  noise = 0.1;
  fixedMs = 0;
  perItemMs = 0;
  // By bucket, the sizes seen so far.
  readonly #table: Seen[] = [];
  #unfitted = 0;
  #surprises = 0;
  // The bucket of all surprises in a row, -1 where they came in several.
  #surprising = -1;

  learn(size: number, runMs: number, expectedMs: number, weightSum: number, inFlight: number, slowdown: number): void {
    const bucket = bucketOf(size);
    const learnedMs = this.batches++ < 8 ? runMs : this.#clipped(expectedMs, runMs, bucket);
    const seen = (this.#table[bucket] ??= { weight: 0, size: 0, runMs: 0, weightSum, inFlight, slowdown });
    // A pause makes a run longer, never shorter: a first look that the next ones show to be three times too slow was one.
    if (seen.weight < 4 && learnedMs < seen.runMs / 3) seen.weight = 0;
    seen.weight = Math.min(seen.weight + 1, maxPerBucket);
    seen.size += (size - seen.size) / seen.weight;
    seen.runMs += (learnedMs - seen.runMs) / seen.weight;
    seen.weightSum += (weightSum - seen.weightSum) / seen.weight;
    seen.inFlight += (inFlight - seen.inFlight) / seen.weight;
    seen.slowdown += (slowdown - seen.slowdown) / seen.weight;
    this.#unfitted++;
    // Every batch moves a young line; an old one changes slowly, and a fit costs more than a decision.
    if (this.batches <= 64 || this.#unfitted >= 8) this.#fit();
  }

  /** Divides the run times by the slowdown of this fit instead of what they were divided by. */
  divideBy(fit: ContentionFit): void {
    let hasChanged = false;
    this.#table.forEach((seen) => {
      const slowdown = slowdownOf(fit, seen.inFlight, seen.weightSum);
      if (slowdown === seen.slowdown) return;
      seen.runMs *= seen.slowdown / slowdown;
      seen.slowdown = slowdown;
      hasChanged = true;
    });
    if (hasChanged) this.#fit();
  }

  seen(size: number): number {
    return this.#table[bucketOf(size)]?.weight ?? 0;
  }

  hasSeen(size: number): boolean {
    return this.#table[bucketOf(size)] !== undefined;
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
  /** As if they ran alone: divided by `slowdown`. */
  runMs: number;
  slowdown: number;
  /** Runs in flight while they ran, themselves included. */
  inFlight: number;
  /** The weight of a batch's items together. */
  weightSum: number;
}

const unseen: Seen = { weight: 0, size: 0, runMs: 0, weightSum: 0, inFlight: 1, slowdown: 1 };
const isKnown = (seen = unseen): boolean => seen.weight >= 0.3;
const maxPerBucket = 20;

/** Whether weights decide which items go together: they explain run times, and no runner sorts the items itself. */
export const choosesByWeight = (
  { batchWeight }: Pick<BatcherOptions<never, never>, "batchWeight">,
  { perWeightMs }: Pick<CostModel, "perWeightMs">,
): boolean => perWeightMs > 0 && batchWeight !== "apart";
