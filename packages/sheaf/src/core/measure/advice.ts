import type { BatcherStats, CostEstimate, Distribution, Verdict } from "../contract/stats.ts";

/** The figures behind advice; see BatcherStats. */
export interface AdviceInput {
  readonly batches: number;
  readonly fillRate: number;
  readonly queueWaitMs: Distribution;
  readonly costModel: CostEstimate | null;
  readonly verdict: Verdict;
  readonly overload: BatcherStats["overload"];
}

/** Batches before the figures are put into words. */
export const batchesNeeded = 50;

/** Sentences that say what the figures mean and what to do; none before 50 batches. */
export function advise(stats: AdviceInput): string[] {
  if (stats.batches < batchesNeeded) return [];
  return [alone, overloaded, bottleneck, gainsNothing].flatMap((rule) => rule(stats) ?? []);
}

type Rule = (stats: AdviceInput) => string | undefined;

/** The commonest mistakes: an `await` in a loop, and a batcher made inside a handler. */
const alone: Rule = ({ verdict, batches }) =>
  verdict.verdict === "nothing-to-batch"
    ? `Items come one at a time: each of ${batches} runs held one, so there is nothing to batch. Calls share a run only if ` +
      "they wait together: make the batcher once, outside the handler, and start calls with Promise.all instead of " +
      "awaiting each in a loop."
    : undefined;

const overloaded: Rule = ({ overload }) =>
  overload === null
    ? undefined
    : `More arrives (${Math.round(overload.arrivedPerS)} items a second) than is served (${Math.round(overload.servedPerS)}): ` +
      `for ${(overload.forMs / 1000).toFixed(1)} s the newest items have gone first, so that their callers still wait, and ` +
      "the oldest go last. Add capacity, or call less often.";

/** Only where twice the size would take less time per item by a tenth, even at the least fixed cost. */
const bottleneck: Rule = ({ fillRate, queueWaitMs, costModel, verdict }) => {
  if (fillRate <= 0.95 || queueWaitMs.p50 === 0 || costModel === null || verdict.verdict !== "gains") return undefined;
  const [fixedMs] = costModel.fixedMsRange;
  const itemsMs = costModel.perItemMsRange[1] * verdict.batchSize;
  return 2 * (fixedMs + itemsMs) > 1.1 * (fixedMs + 2 * itemsMs)
    ? `Batches are ${percent(fillRate)} full, and an item takes less time in a larger one: maxBatchSize is the ` +
        "bottleneck, raise it if the run allows."
    : undefined;
};

/** Where batches hold hardly more than one item there is nothing to give up. */
const gainsNothing: Rule = ({ verdict: { verdict, batchSize, low, high, runs } }) =>
  verdict === "gains-nothing" && batchSize > 1.5
    ? `Do not batch: with ${batchSize.toFixed(1)} items a run, items take ${low!.toFixed(2)} to ${high!.toFixed(2)} times ` +
      `as long one by one (95 % range, ${runs} runs), so batching gains nothing.`
    : undefined;

const percent = (share: number): string => `${Math.round(share * 100)} %`;
