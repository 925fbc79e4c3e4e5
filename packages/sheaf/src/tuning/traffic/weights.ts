import { check, oneOf } from "../../shared/checks.ts";
import { checkPattern, isList, notNegative, positive } from "./checks.ts";
import { Random } from "./random.ts";

/** The weight of a batch's items together, and of the heaviest of them; without `weights` every item weighs 1. */
export interface BatchWeights {
  readonly sum: number;
  readonly heaviest: number;
}

/**
 * The weights of items in a simulation, in whole numbers from 1.
 * - lognormal: as texts and prompts are: half of them below `median`, one in a hundred above `p99`, none above `max`;
 * - trace: one after the other, from a log, and again from the first.
 */
export type Weights =
  | {
      readonly pattern: "lognormal";
      readonly median: number;
      readonly p99: number;
      /** @default Infinity */
      readonly max?: number | undefined;
    }
  | { readonly pattern: "trace"; readonly weights: ArrayLike<number> };

/** Deviations of the normal distribution below which 99 % lie. */
const deviationsOf99 = 2.3263478740408408;

/** Weights of items, one after the other, the same for the same seed. @throws {RangeError} for numbers that make no sense. */
export function weightsOf(weights: Weights, seed: number): () => number {
  const random = new Random(seed);
  checkPattern("weights", weights);
  if (weights.pattern === "trace") return traced(weights.weights);
  oneOf("lognormal", "trace")("pattern of weights", weights.pattern);
  const median = positive("median of weights", weights.median);
  const p99 = positive("p99 of weights", weights.p99);
  check(p99 >= median, "p99 of weights", `>= median (${median})`, p99);
  const max = weights.max === undefined ? Infinity : positive("max of weights", weights.max);
  const deviation = Math.log(p99 / median) / deviationsOf99;
  return () => Math.max(1, Math.min(max, Math.round(median * Math.exp(deviation * random.normal()))));
}

function traced(given: ArrayLike<number>): () => number {
  check(isList(given) && given.length > 0, "weights of a trace", "an array of at least one weight", given);
  const weights = Array.from(given, (weight, at) => notNegative(`weights[${at}] of a trace`, weight));
  let next = 0;
  return () => weights[next++ % weights.length]!;
}

/** The weights of all items of a simulation; an item is its number. */
export class ItemWeights {
  readonly #weights: Float64Array;
  readonly #median: number;

  constructor(weights: Weights, items: number, seed: number) {
    this.#weights = Float64Array.from({ length: items }, weightsOf(weights, seed));
    this.#median = this.#weights.toSorted()[items >> 1]!;
  }

  readonly of = (item: number): number => this.#weights[item]!;

  isLighter(item: number): boolean {
    return this.of(item) < this.#median;
  }

  together(batch: readonly number[]): BatchWeights {
    const weights = batch.map(this.of);
    return { sum: weights.reduce((sum, weight) => sum + weight, 0), heaviest: Math.max(...weights) };
  }
}
