import { recommend, type Recommendation, type RecommendOptions } from "sheaf/tuning";
import type { MeasuredCost, MeasuredPoint } from "sheaf/internal/tuning"; // prettier-ignore
import type { BatchVerdict } from "../../runners/self-test/batch-verdict.ts";
import { figures } from "../../shared/terminal.ts";
import { gainError, gainSentence } from "./measured-gain.ts";

export interface Advice extends Omit<Recommendation, "reason"> {
  readonly reason: Recommendation["reason"] | "batch-dependent";
  /** Whether the whole 95 % range of the measurement supports the verdict. */
  readonly isSettled: boolean;
  /** The missing evidence if it does not; otherwise empty. */
  readonly missing: string;
  /** What the ends of the measured range would have advised, and the advice itself. */
  readonly ranges: AdviceRanges;
}

/** From the least to the most. */
export interface AdviceRanges {
  readonly maxBatchSize: readonly [number, number];
  readonly capacityPerS: readonly [number, number];
  /** Capacity with batches ÷ capacity one by one: the left side of the inequality. */
  readonly gain: readonly [number, number];
}

/**
 * The advice from a measured cost. `measuredPerS`: the items a second that the measurement itself reached, pauses of the machine
 * included, which the range of the rate must hold. A model whose results depend on the batch runs one by one, even where batches would gain.
 * @throws {RangeError} as `recommend` does.
 */
export function adviseOn(
  costModel: MeasuredCost,
  options: RecommendOptions,
  tested: BatchVerdict = {},
  measuredPerS: number = Infinity,
): Advice {
  if (tested.selfTest === "dependent" && tested.maxBatchSize === 1) {
    // Its figures are those of one item at a time, as where the order is strict.
    const alone = recommend(costModel, { ...options, order: "strict" });
    const because = "an item's result depends on its batch, so n ≤ 1";
    return { ...alone, reason: "batch-dependent", because, isSettled: true, missing: "", ranges: rangesOf([alone]) };
  }
  const advice = recommend(costModel, options);
  const single = costModel.table.find(([size]) => size === 1);
  const possible = single === undefined ? [] : rangeOf(costModel, single).map((cost) => recommend(cost, options));
  const missing = missingFor(advice, costModel, options, possible);
  const ranges = rangesOf([advice, ...possible]);
  const [lowest, highest] = ranges.capacityPerS;
  const capacityPerS = [Math.min(lowest, measuredPerS), highest] as const;
  return { ...advice, isSettled: missing === "", missing, ranges: { ...ranges, capacityPerS } };
}

function rangesOf(possible: readonly Recommendation[]): AdviceRanges {
  const range = (of: (one: Recommendation) => number): [number, number] => {
    const values = possible.map(of);
    return [Math.min(...values), Math.max(...values)];
  };
  return {
    maxBatchSize: range((one) => one.maxBatchSize),
    capacityPerS: range((one) => one.capacityPerS),
    gain: range((one) => one.capacityPerS / one.unbatchedCapacityPerS),
  };
}

/** The verdict in plain words, then the inequality behind it; without support it names the missing evidence instead. */
export function verdictLines(about: string, costModel: MeasuredCost, advice: Advice): string[] {
  const { because, isSettled, missing } = advice;
  const gain = gainSentence(costModel, advice);
  if (!isSettled) return [`${about}: not settled${gain === undefined ? "" : `: ${gain}`}.`, missing];
  const verdict = advice.verdict === "batch" ? "batch" : "DO NOT BATCH";
  if (gain === undefined) return [`${about}: ${verdict}: ${because}.`];
  const [low, high] = advice.ranges.gain;
  const range = advice.verdict === "batch" ? ` (its left side: ${figures(low)} to ${figures(high)})` : "";
  return [`${about}: ${verdict}: ${gain}.`, `The inequality: ${because}${range}.`];
}

/** The limit that decides against batches, where the range reaches across it. */
const limits: Readonly<Record<Exclude<Recommendation["reason"], "gains">, string>> = {
  "strict-order": "the order",
  "budget-too-short": "the budget",
  "no-fixed-part": "a gain of 1.1×",
  "low-rate": "10 % busy one by one",
};

function missingFor(
  { verdict }: Recommendation,
  costModel: MeasuredCost,
  options: RecommendOptions,
  possible: readonly Recommendation[],
): string {
  if (options.order === "strict") return "";
  if (!costModel.table.some(([size]) => size === 1)) return "No single item was measured: add 1 to --sizes.";
  if (costModel.table.length === 1) return "Only single items were measured: add larger --sizes.";
  if (possible.every((other) => other.verdict === verdict)) return "";
  const across = possible.flatMap(({ reason }) => (reason === "gains" ? [] : [limits[reason]]));
  return `The 95 % range reaches across ${[...new Set(across)].join(" and ")}: measure longer.`;
}

/** The ends of the measured range: batches slower or faster beside single items, and all runs slower or faster. */
function rangeOf({ fixedMs, perItemMs, table }: MeasuredCost, single: MeasuredPoint): Omit<MeasuredCost, "r2">[] {
  const largest = table.reduce((most, point) => (point[0] > most[0] ? point : most));
  // The slope goes on beyond the largest size, so it moves with that.
  const moved = (factor: (point: MeasuredPoint) => number): Omit<MeasuredCost, "r2"> => ({
    fixedMs,
    perItemMs: perItemMs * factor(largest),
    table: table.map((point) => [point[0], point[1] * factor(point)] as const),
  });
  const apart = (point: MeasuredPoint): number => (point === single ? 1 : 1 + gainError(single, point));
  const together = ([, , errorRate = 0]: MeasuredPoint): number => 1 + errorRate;
  return [moved(apart), moved((point) => 1 / apart(point)), moved(together), moved((point) => 1 / together(point))];
}
