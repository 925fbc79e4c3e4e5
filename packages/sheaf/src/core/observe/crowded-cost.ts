import type { CostModel } from "../../policies/cost-model.ts";
import type { RunTime } from "../contract/executor.ts";
import { slowdownOf, type Contention } from "./contention.ts";
import type { Judgement, LearnedCost } from "./learned-cost.ts";
import type { WeighedCost } from "./weighed-cost.ts";

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
