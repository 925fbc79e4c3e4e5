import { nextSize, type CostModel } from "../../policies/cost-model.ts";
import type { BatcherStats } from "../contract/stats.ts";
import type { BatcherCapacity } from "../contract/batcher.ts";

/** Waiting items, and their weight together. */
export interface Waiting {
  readonly items: number;
  readonly weight: number;
}

/** One batch of about that size is enough; four of other sizes are enough for a line. */
const isKnown = (cost: CostModel, size: number): boolean => cost.seen(size) > 0.5 || cost.batches >= 4;

/**
 * Arrival to result of an item behind `waiting` others, with runs in flight that will take `restsMs`; undefined before
 * the cost of a batch is known.
 */
export function expectedLatencyMs(
  cost: CostModel,
  { concurrency, maxBatchSize }: BatcherCapacity,
  waiting: number,
  restsMs: readonly number[],
): number | undefined {
  const size = Math.min(maxBatchSize, waiting + 1);
  if (!isKnown(cost, size)) return undefined;
  const runMs = cost.at(size);
  return startMs(Math.floor(waiting / size), runMs, concurrency, restsMs) + runMs;
}

/**
 * The same while the newest items go first. It goes next if fewer than a batch come before a slot is free. Otherwise it waits
 * until the overload ends, which is expected to last as long again as it has lasted.
 */
export function expectedNewestFirstMs(
  cost: CostModel,
  { concurrency, maxBatchSize }: BatcherCapacity,
  { arrivedPerS, forMs }: NonNullable<BatcherStats["overload"]>,
  inOrderMs: number,
  restsMs: readonly number[],
): number {
  const restMs = restsMs.length < concurrency ? 0 : Math.min(...restsMs);
  const newer = (arrivedPerS * restMs) / 1000;
  return newer < maxBatchSize ? restMs + cost.at(maxBatchSize) : Math.max(inOrderMs, forMs);
}

/** Number of batches of one size at which a single outlier, such as a GC pause, hardly moves the estimate. */
const batchesToTrust = 4;

/**
 * Whether an item behind so many could well have its result within `withinMs`, though more is expected: batches of the expected
 * size are hardly known, and in those that are known it would. In a young batcher one pause passes for the cost of a size, and
 * larger sizes then seem to cost even more.
 */
export function mayBeWithin(
  withinMs: number,
  cost: CostModel,
  { concurrency, maxBatchSize }: BatcherCapacity,
  waiting: number,
  restsMs: readonly number[],
): boolean {
  const largest = Math.min(maxBatchSize, waiting + 1);
  if (cost.seen(largest) >= batchesToTrust) return false;
  for (let size = 1; size <= largest; size = nextSize(size)) {
    if (cost.seen(size) <= 0.5) continue;
    const runMs = cost.at(size);
    if (startMs(Math.floor(waiting / size), runMs, concurrency, restsMs) + runMs <= withinMs) return true;
  }
  return false;
}

/** The time until a run can start behind `batches` others that take `runMs` each. */
function startMs(batches: number, runMs: number, concurrency: number, restsMs: readonly number[]): number {
  const busy = restsMs.length;
  // Some wait at a slot that is busy still.
  if (busy > concurrency) return (restsMs.reduce((sum, ms) => sum + ms, 0) + batches * runMs) / concurrency;
  const free = concurrency - busy;
  if (batches < free) return 0;
  const place = (batches - free) % concurrency;
  const restMs = place < busy ? restsMs.toSorted((a, b) => a - b)[place]! : runMs;
  return restMs + Math.floor((batches - free) / concurrency) * runMs;
}

/** The same by weight, for an item before which these go. */
export function expectedByWeightMs(
  cost: CostModel,
  { concurrency, maxBatchSize }: BatcherCapacity,
  before: Waiting,
  weight: number,
  restsMs: readonly number[],
): number {
  const loneMs = cost.of(1, weight, weight);
  const mean = before.weight / Math.max(1, before.items);
  const workMs = before.items === 0 ? 0 : cost.of(before.items, before.weight, mean) - cost.fixedMs;
  // The size of runs that drains it fastest, for its mean wait: see targetMs of auto.
  const partMs = Math.min(workMs, Math.sqrt((2 * cost.fixedMs * workMs) / concurrency));
  const parts = Math.max(workMs / Math.max(partMs, Number.EPSILON), before.items / maxBatchSize);
  const batches = Math.max(0, Math.floor(parts) - 1);
  // In the first batch it is joined by others only as far as its deadline allows.
  const ownMs = batches === 0 ? loneMs : partMs + loneMs;
  return startMs(batches, cost.fixedMs + partMs, concurrency, restsMs) + ownMs;
}

/** The time until these are answered; undefined before the cost of a batch is known. */
export function drainMs(
  cost: CostModel,
  { concurrency, maxBatchSize }: BatcherCapacity,
  { items, weight }: Waiting,
): number | undefined {
  const size = Math.min(maxBatchSize, Math.max(1, items));
  if (!isKnown(cost, size)) return undefined;
  const mean = weight / Math.max(1, items);
  const runMs = cost.perWeightMs === 0 ? cost.at(size) : cost.of(size, size * mean, mean);
  return (Math.ceil(items / size) / concurrency) * runMs;
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
