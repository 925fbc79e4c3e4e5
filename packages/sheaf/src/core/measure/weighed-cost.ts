import type { CostModel } from "../../policies/cost-model.ts";
import type { RunTime } from "../contract/executor.ts";
import type { Judgement } from "./learned-cost.ts";
import { LearnedCost } from "./learned-cost.ts";
import { verdictOf } from "./verdict.ts";
import { fitWeights, type WeighedRun, type WeightFit } from "./weight-fit.ts";

/**
 * The cost model of a batcher with `weigh`. By size, as without it, until weights explain run times better; from then on by
 * size and weight, and by size again once they no longer do.
 */
export class WeighedCost implements CostModel {
  readonly #bySize: LearnedCost = new LearnedCost();
  readonly #isApart: boolean;
  #fit: WeightFit | undefined;
  /** The last runs, a ring of objects that are filled again. */
  readonly #runs: WeighedRun[] = [];
  #kept = 0;
  #unfitted = 0;
  /** Runs in a row that were off the fit in the same direction. */
  #surprises = 0;
  /** Weight of an item as runs count it, over about the last 30. */
  #meanWeight = 0;
  #verdict: Judgement["verdict"] | undefined;

  /** `isApart`: each item costs its own weight, whatever runs look like. */
  constructor(isApart: boolean = false) {
    this.#isApart = isApart;
  }

  get batches(): number {
    return this.#bySize.batches;
  }

  get noise(): number {
    return this.#fit?.noise ?? this.#bySize.noise;
  }

  get fixedMs(): number {
    return this.#fit?.fixedMs ?? this.#bySize.fixedMs;
  }

  get fixedMsAtMost(): number {
    return this.#fit?.fixedMsRange[1] ?? this.#bySize.fixedMsAtMost;
  }

  /** Of an item of mean weight. */
  get perItemMs(): number {
    const fit = this.#fit;
    return fit === undefined ? this.#bySize.perItemMs : fit.perItemMs + fit.perWeightMs * this.#meanWeight;
  }

  get perWeightMs(): number {
    return this.#fit?.perWeightMs ?? 0;
  }

  /** Learns from one batch, and returns its expected run time, 0 where there was none. */
  observe(size: number, runMs: number, weights: { readonly sum: number; readonly heaviest: number }): number {
    const expectedBySizeMs = this.#bySize.observe(size, runMs);
    if (!(size >= 1) || !(runMs >= 0) || runMs === Infinity) return expectedBySizeMs;
    const expectedMs = this.#fit === undefined ? expectedBySizeMs : this.of(size, weights.sum, weights.heaviest);
    // The first batches make things that later ones reuse.
    if (this.batches <= coldBatches) return expectedMs;
    this.#keep(size, weights.sum, weights.heaviest, runMs);
    const counted = this.#fit?.padded === true ? weights.heaviest : weights.sum / size;
    const share = Math.max(meanShare, 1 / this.#kept);
    this.#meanWeight += share * (counted - this.#meanWeight);
    if (this.#fit !== undefined) this.#follow(expectedMs, runMs);
    this.#unfitted++;
    if (this.#kept <= 64 || this.#unfitted >= 8) this.#refit();
    return expectedMs;
  }

  warmedUp(runs: readonly RunTime[]): void {
    this.#bySize.warmedUp(runs);
  }

  judgement(): Judgement {
    const fit = this.#fit;
    if (fit === undefined) {
      const { costModel, verdict } = this.#bySize.judgement();
      return { costModel: costModel && { ...costModel, perWeightMs: null }, verdict };
    }
    const { fixedMs, perItemMs, perWeightMs, fixedMsRange, perItemMsRange, perWeightMsRange, runs } = fit;
    const costModel = {
      fixedMs,
      perItemMs,
      perWeightMs,
      fixedMsRange,
      perItemMsRange,
      perWeightMsRange,
      batchWeight: fit.padded ? ("padded" as const) : ("sum" as const),
      runs,
      basis: "runs" as const,
    };
    return { costModel, verdict: (this.#verdict ??= this.#verdictOf(fit)) };
  }

  seen(size: number): number {
    return this.#bySize.seen(size);
  }

  line(size: number): number {
    return this.#fit === undefined ? this.#bySize.line(size) : this.fixedMs + this.perItemMs * size;
  }

  at(size: number): number {
    return this.#fit === undefined ? this.#bySize.at(size) : this.line(size);
  }

  of(size: number, sum: number, heaviest: number): number {
    const fit = this.#fit;
    if (fit === undefined) return this.#bySize.at(size);
    return fit.fixedMs + fit.perItemMs * size + fit.perWeightMs * (fit.padded ? heaviest * size : sum);
  }

  #keep(size: number, weight: number, heaviest: number, runMs: number): void {
    const run = (this.#runs[this.#kept++ % ringSize] ??= { size, weight, heaviest, runMs });
    run.size = size;
    run.weight = weight;
    run.heaviest = heaviest;
    run.runMs = runMs;
  }

  /** Where run times have changed for all weights alike, the fit changes with them until the old runs are forgotten. */
  #follow(expectedMs: number, runMs: number): void {
    const error = runMs / Math.max(expectedMs, Number.EPSILON) - 1;
    const isSurprise = Math.abs(error) > Math.max(4 * this.noise, 0.25);
    const direction = Math.sign(error);
    if (!isSurprise) this.#surprises = 0;
    else this.#surprises = Math.sign(this.#surprises) === direction ? this.#surprises + direction : direction;
    if (Math.abs(this.#surprises) < surprisesToFollow) return;
    this.#surprises = 0;
    const fit = this.#fit!;
    const factor = 1 + error;
    this.#fit = {
      ...fit,
      fixedMs: fit.fixedMs * factor,
      perItemMs: fit.perItemMs * factor,
      perWeightMs: fit.perWeightMs * factor,
    };
    const first = this.#kept % ringSize;
    const inOrder = this.#kept > ringSize ? [...this.#runs.slice(first), ...this.#runs.slice(0, first)] : this.#runs;
    this.#runs.splice(0, this.#runs.length, ...inOrder.slice(-surprisesToFollow));
    this.#kept = this.#runs.length;
  }

  #refit(): void {
    this.#unfitted = 0;
    this.#verdict = undefined;
    this.#fit = fitWeights(this.#runs, this.#fit, this.#isApart);
  }

  /** The items of the last runs one by one, as the fit has it, against the time that the runs took. */
  #verdictOf(fit: WeightFit): Judgement["verdict"] {
    let items = 0;
    let apartMs = 0;
    let togetherMs = 0;
    for (const { size, weight, runMs } of this.#runs) {
      items += size;
      apartMs += (fit.fixedMs + fit.perItemMs) * size + fit.perWeightMs * weight;
      togetherMs += runMs;
    }
    const offMs = (fit.fixedMsRange[1] - fit.fixedMs + fit.perItemMsRange[1] - fit.perItemMs) * items;
    const deviation = Math.hypot(offMs / apartMs, (2 * fit.noise) / Math.sqrt(this.#runs.length));
    const sample = { batchSize: items / this.#runs.length, count: this.#runs.length };
    // Weights are explained: what is left is the fit of the line, or how far runs scatter around it.
    const cause = offMs / apartMs > (2 * fit.noise) / Math.sqrt(this.#runs.length) ? "one-size" : "scatter";
    return { ...verdictOf(sample, apartMs / togetherMs, deviation, cause), start: this.#bySize.start };
  }
}

const ringSize = 128;
const coldBatches = 2;
const meanShare = 1 / 30;
const surprisesToFollow = 4;
