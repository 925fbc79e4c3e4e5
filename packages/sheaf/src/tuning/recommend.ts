import type { CostLine } from "./cost-line.ts";
import { checkCount, checkOptions, checkPositive, numberThat, oneOf, type Check } from "../shared/checks.ts";

export interface RecommendOptions {
  /** Independent arrivals per second; > 0. `simulate` knows other patterns. */
  readonly ratePerS: number;
  /**
   * Longest acceptable time from an item's arrival to its result, in milliseconds.
   * @default none
   */
  readonly latencyBudgetMs?: number | undefined;
  /**
   * Batches that run at once without slowing each other down; integer >= 1.
   * @default 1
   */
  readonly slots?: number | undefined;
  /**
   * Largest batch the model or service takes; integer >= 1. No size beyond the largest in the table is advised.
   * @default the largest measured size, or 256
   */
  readonly maxBatchSize?: number | undefined;
  /**
   * `"strict"`: an item may start only after the one before it has ended.
   * @default "free"
   */
  readonly order?: "free" | "strict" | undefined;
}

/** Why; `because` spells it out with numbers. */
export type RecommendReason = "gains" | "strict-order" | "budget-too-short" | "no-fixed-part" | "low-rate";

export interface Recommendation {
  readonly verdict: "batch" | "do not batch";
  readonly reason: RecommendReason;
  /** The inequality behind the verdict, with its numbers. */
  readonly because: string;
  /** Smallest size within the budget where items a second stop rising (within 5 %); 1 for "do not batch". */
  readonly maxBatchSize: number;
  /** Cap on voluntary holding: the rest of the budget, or the fixed part, beyond which waiting cannot pay. */
  readonly maxWaitMs: number;
  /** Items a second with full batches, and one at a time. */
  readonly capacityPerS: number;
  readonly unbatchedCapacityPerS: number;
  /** Rate ÷ capacity of the recommended setting; 1 and above cannot be served. */
  readonly utilisation: number;
  /** Mean size of batches that start as soon as a slot is free. */
  readonly meanBatchSize: number;
  /** Run time one at a time ÷ run time in batches of the mean size. */
  readonly expectedSpeedup: number;
}

// A smaller gain is within the error of measurement and does not justify batching.
const smallestGain = 1.1;
// Below this share of busy time two independent items rarely meet under any policy.
const lowUtilisation = 0.1;
const risesNoMore = 0.95;

/**
 * Advice from a measured cost for a rate and a latency budget, or "do not batch" with the inequality behind it. Pure.
 * Run times come from the table where the cost has one (costs are staircases), else from the line.
 * @throws {RangeError} for options out of range.
 * @experimental It may change in any minor version.
 */
export function recommend(costModel: CostLine, options: RecommendOptions): Recommendation {
  const { ratePerS, latencyBudgetMs = Infinity, slots = 1, order = "free" } = options;
  validate(costModel, options);
  // Beyond the largest measured size costs may rise, and a single far point may have bent the line.
  const measured = Math.max(...(costModel.table?.map(([size]) => size) ?? [Infinity]));
  const largest = Math.min(measured, options.maxBatchSize ?? (measured === Infinity ? 256 : measured));
  const run = runTimeOf(costModel);
  const perMs = ratePerS / 1000;
  const oneMs = run(1);
  const unbatchedCapacityPerS = (1000 * slots) / oneMs;

  const doNotBatch = (reason: RecommendReason, because: string): Recommendation => ({
    verdict: "do not batch",
    reason,
    because,
    maxBatchSize: 1,
    maxWaitMs: 0,
    capacityPerS: unbatchedCapacityPerS,
    unbatchedCapacityPerS,
    utilisation: ratePerS / unbatchedCapacityPerS,
    meanBatchSize: 1,
    expectedSpeedup: 1,
  });

  if (order === "strict") {
    return doNotBatch("strict-order", "strict order: an item starts after the one before it has ended, so n ≤ 1");
  }
  if (oneMs > latencyBudgetMs) {
    return doNotBatch(
      "budget-too-short",
      `s(1) = ${ms(oneMs)} > ${ms(latencyBudgetMs)}, the budget, with nothing waiting`,
    );
  }
  // The worst case: a batch has just left, one of `slots` ends every s ÷ slots, and then comes the item's own run.
  const worstMs = (size: number): number => run(size) * (1 + 1 / slots);
  const feasible = sizesUpTo(largest).filter((size) => size === 1 || worstMs(size) <= latencyBudgetMs);
  const itemsPerMs = (size: number): number => size / run(size);
  const best = Math.max(...feasible.map(itemsPerMs));
  const maxBatchSize = feasible.find((size) => itemsPerMs(size) >= risesNoMore * best)!;
  const gain = itemsPerMs(maxBatchSize) * oneMs;
  if (largest >= 2 && feasible.length === 1) {
    const because = `the wait for a run and the own run, ${ms(worstMs(2))} for 2 items, > ${ms(latencyBudgetMs)}, the budget`;
    return doNotBatch("budget-too-short", because);
  }
  if (best * oneMs < smallestGain) {
    const size = feasible.findLast((candidate) => itemsPerMs(candidate) === best)!;
    const at = size === 1 ? feasible.at(-1)! : size;
    return doNotBatch(
      "no-fixed-part",
      `no fixed part to share: ${at} × s(1) ÷ s(${at}) = ${at} × ${ms(oneMs)} ÷ ${ms(run(at))} = ` +
        `${(itemsPerMs(at) * oneMs).toFixed(2)} < ${smallestGain}`,
    );
  }
  const busy = (perMs * oneMs) / slots;
  if (busy < lowUtilisation) {
    return doNotBatch(
      "low-rate",
      `only latency counts at this rate: rate × s(1) ÷ slots = ${ratePerS}/s × ${ms(oneMs)} ÷ ${slots} = ` +
        `${(100 * busy).toFixed(1)} % busy < ${100 * lowUtilisation} %, independent items hardly ever meet`,
    );
  }

  const capacityPerS = 1000 * slots * itemsPerMs(maxBatchSize);
  const meanBatchSize = meanSize(run, perMs / slots, maxBatchSize);
  const leftMs = latencyBudgetMs === Infinity ? costModel.fixedMs : latencyBudgetMs - worstMs(maxBatchSize);
  return {
    verdict: "batch",
    reason: "gains",
    because:
      `${maxBatchSize} × s(1) ÷ s(${maxBatchSize}) = ${maxBatchSize} × ${ms(oneMs)} ÷ ${ms(run(maxBatchSize))} = ` +
      `${gain.toFixed(2)} ≥ ${smallestGain}, and one at a time ${(100 * busy).toFixed(0)} % busy ≥ ${100 * lowUtilisation} %`,
    maxBatchSize,
    maxWaitMs: round(Math.max(0, leftMs)),
    capacityPerS,
    unbatchedCapacityPerS,
    utilisation: ratePerS / capacityPerS,
    meanBatchSize,
    expectedSpeedup: (meanBatchSize * oneMs) / run(meanBatchSize),
  };
}

/**
 * The line, or the measured points with straight lines between them, continued with the line's slope. A point within twice its error
 * of the line counts as on the line, so that the luckiest of several sizes does not look like a gain.
 */
export function runTimeOf({ fixedMs, perItemMs, table }: CostLine): (size: number) => number {
  if (table === undefined || table.length === 0) return (size) => fixedMs + perItemMs * size;
  const points = table
    .map(([size, runMs, errorRate = 0]): readonly [number, number] => {
      const lineMs = fixedMs + perItemMs * size;
      return [size, Math.abs(runMs - lineMs) <= 2 * errorRate * runMs ? lineMs : runMs];
    })
    .sort(([a], [b]) => a - b);
  const [firstSize, firstMs] = points[0]!;
  const [lastSize, lastMs] = points.at(-1)!;
  return (size) => {
    if (size <= firstSize) return Math.max(Number.MIN_VALUE, firstMs - perItemMs * (firstSize - size));
    if (size >= lastSize) return lastMs + perItemMs * (size - lastSize);
    const above = points.findIndex(([other]) => other >= size);
    const [lowSize, lowMs] = points[above - 1]!;
    const [highSize, highMs] = points[above]!;
    return lowMs + ((highMs - lowMs) * (size - lowSize)) / (highSize - lowSize);
  };
}

/** Every size to 16, then eight an octave: within 9 % of any other. */
function sizesUpTo(largest: number): number[] {
  const sizes: number[] = [];
  for (let size = 1; size < largest; size = size < 16 ? size + 1 : Math.ceil(size * 2 ** (1 / 8))) sizes.push(size);
  return [...sizes, largest];
}

/** The size n at which a run takes as long as n items need to arrive, by bisection; at most `largest`. */
function meanSize(run: (size: number) => number, perMs: number, largest: number): number {
  const grows = (size: number): boolean => perMs * run(size) > size;
  if (!grows(1)) return 1;
  if (grows(largest)) return largest;
  let low = 1;
  let high = largest;
  for (let step = 0; step < 50; step++) {
    const middle = (low + high) / 2;
    if (grows(middle)) low = middle;
    else high = middle;
  }
  return low;
}

const round = (value: number): number => Number(value.toPrecision(3));
const ms = (value: number): string => `${round(value)} ms`;

const recommendChecks: Record<keyof RecommendOptions, Check> = {
  ratePerS: numberThat("> 0", (rate) => rate > 0 && rate < Infinity),
  latencyBudgetMs: checkPositive,
  slots: checkCount,
  maxBatchSize: checkCount,
  order: oneOf("free", "strict"),
};

function validate({ fixedMs, perItemMs }: CostLine, options: RecommendOptions): void {
  if (!(fixedMs >= 0 && perItemMs >= 0 && fixedMs + perItemMs > 0 && fixedMs + perItemMs < Infinity)) {
    throw new RangeError(`costModel needs fixedMs and perItemMs >= 0, not both 0, got ${fixedMs} and ${perItemMs}`);
  }
  checkOptions(options, recommendChecks);
  recommendChecks.ratePerS("ratePerS", options.ratePerS);
}
