import type { CostModel } from "../policies/cost-model.ts";

/** What is in a batcher, and how it is served. */
export interface Backlog {
  /** Items. */
  readonly waiting: number;
  /** Batches. */
  readonly inFlight: number;
  readonly slots: number;
  readonly maxBatchSize: number;
}

/** One batch of about that size is enough to know it; four of other sizes make a line. */
const isKnown = (cost: CostModel, size: number): boolean => cost.seen(size) > 0.5 || cost.batches >= 4;

/** Arrival to result of one item more behind what waits; undefined before the cost of a batch is known. */
export function expectedLatencyMs(
  cost: CostModel,
  { waiting, inFlight, slots, maxBatchSize }: Backlog,
): number | undefined {
  const size = Math.min(maxBatchSize, waiting + 1);
  if (!isKnown(cost, size)) return undefined;
  return ((Math.floor(waiting / size) + inFlight) / slots + 1) * cost.at(size);
}

/** How long what waits takes to leave the queue; undefined before the cost of a batch is known. */
export function drainMs(cost: CostModel, { waiting, slots, maxBatchSize }: Backlog): number | undefined {
  const size = Math.min(maxBatchSize, Math.max(1, waiting));
  if (!isKnown(cost, size)) return undefined;
  return (Math.ceil(waiting / size) / slots) * cost.at(size);
}
