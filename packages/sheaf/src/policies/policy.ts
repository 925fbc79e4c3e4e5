import type { CostModel } from "./cost-model.ts";

/**
 * Policy: decides *when* waiting items are dispatched and how many. A policy is pure: it owns no clock, no timer and
 * no promise. The scheduler asks it whenever a slot is free and something waits, and arms the timer it asks for.
 */
export interface Policy {
  /** Label for stats, metrics and logs. */
  readonly name: string;
  /**
   * It is a window, and `maxWaitMs` is its length: a batcher without one is refused.
   * @default false
   */
  readonly needsMaxWaitMs?: boolean | undefined;
  /**
   * Waiting items from which a batch may go ahead, to a busy slot of an executor with `prefetch`; at most maxBatchSize.
   * @default maxBatchSize: where fewer wait, the batch goes on filling
   */
  readonly aheadSize?: number | undefined;
  /**
   * Arrival → result that the policy aims at, in milliseconds: bulk runs leave that much to live calls.
   * @default none
   */
  readonly latencyBudgetMs?: number | undefined;
  /**
   * Longest run of the next batch, in milliseconds, where `view.cost` knows the cost of weight; asked before each batch is
   * chosen, with `view` of all that waits. With it, cheap items go before expensive ones, and like ones together; without
   * it, items go in order of arrival.
   */
  targetMs?(view: QueueView): number;
  /**
   * What to do now; called only with `waiting >= 1` and `freeSlots >= 1`; for a batch that goes ahead, with the slot that will
   * be free next.
   * - `{ run: k }` dispatches up to k items at once (clamped to 1 … maxBatchSize);
   * - `{ askAgainAtMs }` asks again at that moment, or earlier when something changes;
   * - `"wait"` asks again only when something changes (an arrival, a finished batch, a flush).
   *
   * The scheduler applies maxBatchSize, maxWaitMs, weights, rate limits and concurrency; no policy can exceed them.
   */
  decide(view: QueueView): Decision;
  /** Items came in: `view.arrivals` of them since the last call, all at `view.nowMs` (time is stamped once a tick). */
  arrived?(view: QueueView): void;
  /**
   * A batch ended and its callers were answered, at `nowMs`: with an executor that measures its runs, or takes a batch
   * ahead, that is not `startedAtMs + runMs`. A batch that was bisected ends with its last part.
   * `cost` has learned from the batch already, and from the parts that passed.
   */
  observe?(record: BatchRecord, nowMs: number, cost: CostModel): void;
}

/** `reason` goes into the batch's record; default `"idle"`, or `"full"` for a full batch. */
export type Decision =
  { readonly run: number; readonly reason?: DispatchReason | undefined } | { readonly askAgainAtMs: number } | "wait";

/** A policy's view of the queue. Times are clock milliseconds. */
export interface QueueView {
  readonly nowMs: number;
  /** Items that could go in the next batch. */
  readonly waiting: number;
  /** The weight of all waiting items together; their number without `weigh`. */
  readonly weight: number;
  /** Arrival of the oldest of them; `nowMs` when none waits. */
  readonly oldestAtMs: number;
  /** In `decide`, the first deadline of the next items, or a moment before it; `Infinity` where they have none. */
  readonly deadlineAtMs: number;
  /** In `decide`, the executor's shortage of cores, 0 … 1; undefined if it reports none. */
  readonly coreShortage: number | undefined;
  /** Items waiting and running. */
  readonly outstanding: number;
  /** Batches that may be in flight at once. */
  readonly slots: number;
  readonly freeSlots: number;
  /** Batches that a busy slot takes ahead: 0 or 1. */
  readonly prefetch: number;
  /** Most items the next batch can hold: maxBatchSize, or fewer where a weight or a rate limit closes it earlier. */
  readonly maxBatchSize: number;
  /** The batcher's cap on voluntary holding, `Infinity` when it has none. */
  readonly maxWaitMs: number;
  /** Items that came in since the last call of `arrived`; 0 in `decide`. */
  readonly arrivals: number;
  /** The learned cost of batches; the same object in every call. */
  readonly cost: CostModel;
  /** The expected run time of a batch of the next `size` items; 0 before the first batch. */
  nextMs(size: number): number;
}

/** Why a batch was dispatched. */
export type DispatchReason = "full" | "idle" | "hold" | "window" | "flush" | "drain" | "immediate" | "weight";

/**
 * Why a batch held no more items. `"full"`: maxBatchSize. `"all"`: no other item waited. `"group"`: those that waited are of other
 * groups. `"cost"`: the policy asked for fewer, because by the learned cost of runs smaller batches answer sooner. `"weight"`: the
 * next item would have been too heavy. `"order"`: the others may not run before earlier items of their keys have ended, or left.
 * `"limit"`: a rate limit, a short queue or the bound on runs of bulk allows no more. `"alone"`: the item shares its batch with no other.
 */
export type SizeReason = "full" | "all" | "group" | "cost" | "weight" | "order" | "limit" | "alone";

/** One batch, as policies, statistics, metrics and subscribers see it. Times in milliseconds. */
export interface BatchRecord {
  readonly batchId: number;
  /** Why it started at its moment. */
  readonly reason: DispatchReason;
  /** Why it held no more items; undefined where a worker of a fleet ran it. */
  readonly sizeReason?: SizeReason | undefined;
  /** Items in the batch. */
  readonly size: number;
  /** Its weight; equal to `size` without `weigh`. */
  readonly weight: number;
  /** With `weigh`: the weight of its items together, and of the heaviest of them. */
  readonly weights?: { readonly sum: number; readonly heaviest: number } | undefined;
  /** The batch's group key, `undefined` without `groupKey`. */
  readonly group: unknown;
  /** Clock time of the dispatch. */
  readonly startedAtMs: number;
  /** Arrival → dispatch. */
  readonly queueWaitMs: { readonly mean: number; readonly max: number };
  /** Batches in flight while it ran, itself included: the mean over its time. Undefined where a worker of a fleet ran it. */
  readonly inFlight?: number | undefined;
  /** Dispatch → results, or as measured by the executor; where parts of it ran again, dispatch → the last result. */
  readonly runMs: number;
  /** Dispatch → results as the callers saw it: with the way to the executor and back. */
  readonly tookMs: number;
  /**
   * `"ok"`: it returned a result for each item, which may be an error. `"error"`: it failed, and every item with it. `"partial"`: it
   * failed, and items that were answered early or ran again in a part of it have their results all the same. `"refused"`: the batch
   * function put its items back, all or the rest of them, and they will run again.
   */
  readonly outcome: "ok" | "partial" | "error" | "refused";
  /** Items that failed; 0 where a worker of a fleet ran it. */
  readonly failedItems: number;
  /** Runs of a part of it, after it had failed as a whole; 0 where a worker of a fleet ran it. */
  readonly extraRuns: number;
  /** Code of the BatcherError the whole batch failed with, if it was one. */
  readonly errorCode?: string | undefined;
  /** 1; higher when an executor ran the batch again after a crash. */
  readonly attempt: number;
  /** The `tag` of every call that has one; undefined where none has. */
  readonly tags?: readonly unknown[] | undefined;
}
