import type { Policy } from "../../policies/policy.ts";
import type { Clock } from "../runtime/runtime.ts";
import type { BatchContext } from "./executor.ts";
import type { RateLimit, SharedRateLimit } from "./rate-limit.ts";

export type Priority = "immediate" | "interactive" | "bulk";

/** Options of one call. */
export interface CallOptions {
  /**
   * Aborting it rejects the call with `signal.reason`. A waiting item then never runs.
   * @default none
   */
  readonly signal?: AbortSignal | undefined;
  /**
   * Maximum wait of the caller, in milliseconds; then the call rejects with `TIMEOUT`.
   * @default the batcher's `timeoutMs`
   */
  readonly timeoutMs?: number | undefined;
  /**
   * The lane of the item: `immediate` takes the next free slot; `bulk` yields to both, in short runs while they come.
   * @default "interactive"
   */
  readonly priority?: Priority | undefined;
  /**
   * The item shares its batch with no other item, equal items included, and is not held. It keeps its lane and its order key;
   * later items may fill the batch before it. In a list each item is alone.
   * @default false
   */
  readonly alone?: boolean | undefined;
  /**
   * Any value. The record of the item's batch lists it under `tags`, for observers.
   * @default none
   */
  readonly tag?: unknown;
}

/** Prices in any currency, from which `stats().cost` is computed. */
export interface Price {
  /**
   * Price of one run.
   * @default 0
   */
  readonly perRun?: number | undefined;
  /**
   * Price of one item.
   * @default 0
   */
  readonly perItem?: number | undefined;
  /**
   * Price of one unit of weight; needs `weigh`.
   * @default 0
   * @see BatcherOptions.weigh
   */
  readonly perWeight?: number | undefined;
}

/** Options of `createBatcher`. Validated once, at construction. */
export interface BatcherOptions<In, Out = unknown> {
  /**
   * Most items in a batch; integer >= 1 or Infinity.
   * @default 32
   * @see maxBatchWeight
   */
  readonly maxBatchSize?: number | undefined;
  /**
   * Maximum time to hold an item while a slot is free, in milliseconds. It is the window of `fixedWindow()`.
   * @default none
   * @see policy
   */
  readonly maxWaitMs?: number | undefined;
  /**
   * Most batches in flight; integer >= 1. Without it a function starts with 4, and the limit is learned from its runs.
   * @default the executor's slots; learned for a function
   */
  readonly concurrency?: number | undefined;
  /**
   * Most waiting items; integer >= 1, Infinity, or `"auto"`: capacity × timeout, which needs `timeoutMs`. It bounds live calls
   * and, apart from them, bulk calls.
   * @default 10000
   * @see onQueueFull
   */
  readonly maxQueueSize?: number | "auto" | undefined;
  /**
   * With a full queue, `"reject"` fails further items with `QUEUE_FULL`; with `"wait"` the call waits for room, unless `maxQueueSize`
   * calls of its lanes do already.
   * @default "reject"
   * @see maxQueueSize
   */
  readonly onQueueFull?: "reject" | "wait" | undefined;
  /**
   * Order during standing overload (items wait for more than five full runs, and more arrive than are served): `"newest"`
   * sends the newest items first, `"arrival"` the oldest, as at other times. Lanes and `orderKey` are respected either way.
   * @default "newest"
   */
  readonly overloadOrder?: "newest" | "arrival" | undefined;
  /**
   * Weight up to which a batch is filled; a heavier item runs alone. Needs `weigh`.
   * @default none: `auto` chooses
   * @example
   * createBatcher(run, { weigh: (text) => text.length, maxBatchWeight: 8192 });
   * @see batchWeight
   * @see maxItemWeight
   */
  readonly maxBatchWeight?: number | undefined;
  /**
   * A heavier item is refused with `ITEM_TOO_LARGE`; needs `weigh`.
   * @default none
   * @see maxBatchWeight
   */
  readonly maxItemWeight?: number | undefined;
  /**
   * Weight of an item (tokens, bytes); finite, >= 0. Called once, on arrival.
   * @default none
   * @see maxBatchWeight
   */
  readonly weigh?: ((item: In) => number) | undefined;
  /**
   * How `maxBatchWeight` counts: `"sum"`, or `"padded"`: the largest × the count. `"apart"` is the sum, for a batch function
   * that runs light and heavy items separately, as `runInPasses` does: weights then do not decide which items go together.
   * @default "sum"
   * @see maxBatchWeight
   */
  readonly batchWeight?: "sum" | "padded" | "apart" | undefined;
  /**
   * Maximum wait of a caller, in milliseconds; then the call rejects with `TIMEOUT`.
   * @default none
   * @see refuseLate
   */
  readonly timeoutMs?: number | undefined;
  /**
   * The share of its timeout that a call may be expected to take, > 0 and <= 1. A call with a longer expected latency is
   * refused at once with `QUEUE_FULL`.
   * @default none: no call is refused for its expected latency
   * @example
   * createBatcher(run, { timeoutMs: 2000, refuseLate: 0.85 });
   * @see timeoutMs
   */
  readonly refuseLate?: number | undefined;
  /**
   * Maximum run time of a batch, in milliseconds; a longer one is abandoned with `RUN_TIMEOUT`.
   * @default none
   */
  readonly runTimeoutMs?: number | undefined;
  /**
   * Decides when to dispatch. An instance belongs to one batcher.
   * @default auto()
   * @example
   * createBatcher(run, { policy: fixedWindow(), maxWaitMs: 5 });
   * @see maxWaitMs
   */
  readonly policy?: Policy | undefined;
  /**
   * After a run that throws, crashes its worker or exceeds `runTimeoutMs`, `"fail"` gives every caller of the batch the same
   * error; `"bisect"` runs halves to isolate the bad items. Bisect only where repeating a run is safe. Workers bisect by default.
   * @default "fail"
   * @see runOne
   * @see shouldBisect
   * @see maxBisectRuns
   */
  readonly onBatchError?: "fail" | "bisect" | undefined;
  /**
   * Runs the lone item that a bisection isolated, in place of the batch function.
   * @default the batch function
   * @see onBatchError
   */
  readonly runOne?: ((item: In, context: BatchContext) => Out | Error | PromiseLike<Out | Error>) | undefined;
  /**
   * Whether an error can be the fault of single items.
   * @default false for errors of the service itself, true for others
   * @see onBatchError
   */
  readonly shouldBisect?: ((error: unknown) => boolean) | undefined;
  /**
   * Most extra runs of one bisection; integer >= 0.
   * @default 8·⌈log2 n⌉
   * @see onBatchError
   */
  readonly maxBisectRuns?: number | undefined;
  /**
   * Items of different groups never share a batch. Keys compare as in a Map; `undefined` is a group too.
   * @default none
   * @example
   * createBatcher(run, { groupKey: (request) => request.model });
   */
  readonly groupKey?: ((item: In) => unknown) | undefined;
  /**
   * The tenant of an item. Tenants take turns in every batch, and none may fill the queue alone. Keys compare as in a Map; the
   * items without one (`undefined`) are one tenant. Called once, on arrival.
   * @default none: items go in order of arrival, from all callers alike
   * @example
   * createBatcher(run, { fairKey: (request) => request.customer });
   * @see shareOf
   */
  readonly fairKey?: ((item: In) => unknown) | undefined;
  /**
   * Share of a tenant in the batches while others wait too; finite, > 0. Called with the tenant's key for each item, on arrival.
   * @default 1 for each tenant
   * @see fairKey
   */
  readonly shareOf?: ((key: unknown) => number) | undefined;
  /**
   * Items of one key run in order, never in two batches at once; `undefined` means no order.
   * @default none
   */
  readonly orderKey?: ((item: In) => unknown) | undefined;
  /**
   * Equal items share one place in a batch and one result; `undefined` means not shared.
   * @default none
   * @example
   * createBatcher(run, { dedupeKey: (id) => id });
   * @see dedupe
   */
  readonly dedupeKey?: ((item: In) => unknown) | undefined;
  /**
   * The equal items that a call joins: `"waiting"` ones, or `"running"` ones too. Use the latter for pure reads only.
   * @default "waiting"
   * @see dedupeKey
   */
  readonly dedupe?: "waiting" | "running" | undefined;
  /**
   * The key of an item's result if the batch function returns a `Map`.
   * @default the item itself
   * @see onMissing
   */
  readonly resultKey?: ((item: In) => unknown) | undefined;
  /**
   * The result of an item whose key the `Map` lacks: `"undefined"` itself, or `"error"`, which fails it with
   * `MISSING_RESULT`.
   * @default "undefined"
   * @see resultKey
   */
  readonly onMissing?: "undefined" | "error" | undefined;
  /**
   * Limits dispatch to a rate; items wait and batches fill meanwhile. Batchers share a limit of `createRateLimit()`.
   * @default none
   * @example
   * createBatcher(run, { rateLimit: [{ runs: 10, perMs: 1000 }, { items: 100_000, perMs: 86_400_000 }] });
   */
  readonly rateLimit?: RateLimit | readonly RateLimit[] | SharedRateLimit | undefined;
  /**
   * Longest pause, in milliseconds: `retryAfterMs` and `pause` stop dispatch for no longer. A call without a deadline waits
   * out pauses of this length in total when the batch function puts items back; then it gets the error of the last one.
   * @default 300000
   * @see rateLimit
   */
  readonly maxPauseMs?: number | undefined;
  /**
   * Prices of runs, items and weight; `stats().cost` has the sum.
   * @default none
   * @example
   * createBatcher(run, { price: { perRun: 0.002, perItem: 0.0001 } });
   */
  readonly price?: Price | undefined;
  /**
   * Label in errors, statistics and metrics.
   * @default "batcher"
   */
  readonly name?: string | undefined;
  /**
   * The source of time, for tests and simulations.
   * @default the system's clock
   */
  readonly clock?: Clock | undefined;
}

/** Batches in flight at first, if the limit is learned. */
export const firstConcurrency = 4;

/** The default of an option that is not given. */
export const defaults = {
  maxBatchSize: 32,
  maxQueueSize: 10_000,
  maxPauseMs: 300_000,
  name: "batcher",
} as const;

/**
 * What else happens without an option: for the reference. Options that are in neither table default to "none".
 * @public
 */
export const defaultChoices = {
  onQueueFull: "reject",
  overloadOrder: "newest",
  batchWeight: "sum",
  onBatchError: "fail",
  dedupe: "waiting",
  onMissing: "undefined",
  priority: "interactive",
} as const;
