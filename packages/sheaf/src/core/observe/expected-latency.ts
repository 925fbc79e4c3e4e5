import type { CostModel } from "../../policies/cost-model.ts";
import type { BatcherCapacity } from "../contract/batcher.ts";

/** One batch of about that size is enough; four of other sizes are enough for a line. */
const isKnown = (cost: CostModel, size: number): boolean => cost.seen(size) > 0.5 || cost.batches >= 4;

/**
 * Arrival to result of one more item behind so many that wait, with so many batches in flight; undefined before the cost of
 * a batch is known.
 */
export function expectedLatencyMs(
  cost: CostModel,
  { concurrency, maxBatchSize }: BatcherCapacity,
  waiting: number,
  inFlight: number,
): number | undefined {
  const size = Math.min(maxBatchSize, waiting + 1);
  if (!isKnown(cost, size)) return undefined;
  return ((Math.floor(waiting / size) + inFlight) / concurrency + 1) * cost.at(size);
}

/** The time until so many items that wait are answered; undefined before the cost of a batch is known. */
export function drainMs(
  cost: CostModel,
  { concurrency, maxBatchSize }: BatcherCapacity,
  waiting: number,
): number | undefined {
  const size = Math.min(maxBatchSize, Math.max(1, waiting));
  if (!isKnown(cost, size)) return undefined;
  return (Math.ceil(waiting / size) / concurrency) * cost.at(size);
}

/** Most items that may wait, however fast the runs: without a run time there would be no bound. */
const maxWaiting = 1_000_000;

/**
 * Items that can wait and still be answered within `withinMs`, by Little's law: what the slots serve in the time that a
 * last run leaves, less a tenth, at most a million. No number above 0 before 4 batches are known, or where none follows.
 */
export function queueBound(cost: CostModel, { concurrency, maxBatchSize }: BatcherCapacity, withinMs: number): number {
  if (cost.batches < 4) return 0;
  // A batch of unlimited size may take half of the time at most.
  const size = maxBatchSize < Infinity ? maxBatchSize : Math.max(1, (withinMs / 2 - cost.fixedMs) / cost.perItemMs);
  const runMs = cost.at(size);
  const most = Math.min(size, 1e9);
  // Never less than a batch: the queue must be able to fill one.
  return Math.min(maxWaiting, Math.ceil(Math.max(0.9 * ((most * concurrency) / runMs) * (withinMs - runMs), most)));
}
