import type { CostModel } from "./cost-model.ts";

/** How much an item's own run time counts against it: 1 would be fair to all, 2 starves long items under load. */
const shortness = 1.5;

/**
 * Items of known cost go in this order, the highest first: (1 + wait / own run) / own run^1.5. A short item goes before a
 * long one until that has waited for long. (The highest response ratio next, Hansen 1971, for each unit of time that an
 * item takes, Smith 1956.)
 */
export const urgency = (loneMs: number, waitedMs: number): number => (1 + waitedMs / loneMs) / loneMs ** shortness;

/** Nothing is overtaken once it has waited for this many times as long as it would take in order of arrival. */
const maxOvertaking = 16;

/**
 * From when on no newer item may overtake one that comes now, and weighs `weight`, because it costs less. `waiting`: items
 * before it in order of arrival, and their weight.
 */
export function dueAtMs(
  cost: CostModel,
  { concurrency, maxBatchSize }: { readonly concurrency: number; readonly maxBatchSize: number },
  waiting: { readonly items: number; readonly weight: number },
  weight: number,
  nowMs: number,
): number {
  // Before weights explain run times nothing overtakes; items that wait when they do go first.
  if (cost.perWeightMs === 0) return nowMs;
  const items = waiting.items + 1;
  const sum = waiting.weight + weight;
  const size = Math.min(maxBatchSize, items);
  const runs = items / size / Math.min(concurrency, items);
  const inOrderMs = runs * cost.of(size, (sum * size) / items, sum / items) + cost.of(1, weight, weight);
  return nowMs + maxOvertaking * inOrderMs;
}
