import type { Policy } from "../../policies/policy.ts";
import type { Clock } from "../runtime/clock.ts";
import type { BatchContext } from "./batch-context.ts";

export type Priority = "immediate" | "interactive" | "bulk";

/** Options of one call. */
export interface CallOptions {
  /** Aborting it rejects the call with `signal.reason`; a waiting item is then never run. */
  readonly signal?: AbortSignal | undefined;
  /** The caller's whole wait, in milliseconds; past it the call rejects with `TIMEOUT`. Default: the batcher's. */
  readonly timeoutMs?: number | undefined;
  /** Default `"interactive"`. */
  readonly priority?: Priority | undefined;
  /**
   * The item shares its batch with no other, not with an equal one either, and is not held. It keeps its lane and its
   * orderKey; what waits behind it may fill the batch before it. In a list each item is alone. Default false.
   */
  readonly alone?: boolean | undefined;
  /** Under standing overload this call and others with it go in order of arrival, before the newest of the rest. */
  readonly overloadOrder?: "arrival" | undefined;
  /** Anything; the record of the batch that the item rides in lists it under `tags`, so that an observer knows whose it is. */
  readonly tag?: unknown;
}

/** A token bucket on dispatch: at most this many per `perMs` milliseconds, in bursts of at most the same. */
export interface RateLimit {
  readonly runs?: number | undefined;
  readonly items?: number | undefined;
  readonly weight?: number | undefined;
  readonly perMs: number;
}

/** Prices in any currency, from which `stats().cost` is computed. */
export interface Price {
  readonly perRun?: number | undefined;
  readonly perItem?: number | undefined;
  readonly perWeight?: number | undefined;
}

/** Options of `createBatcher`. Validated once, at construction. */
export interface BatcherOptions<In, Out = unknown> {
  /** Most items in a batch; integer >= 1 or Infinity. Default 32. */
  readonly maxBatchSize?: number | undefined;
  /** Cap on voluntary holding in milliseconds: while a slot is free the oldest item waits no longer. Default none. */
  readonly maxWaitMs?: number | undefined;
  /** Batches in flight; integer >= 1. Default: the executor's slots, 4 for a function. */
  readonly concurrency?: number | undefined;
  /** Most items waiting; integer >= 1, Infinity, or `"auto"` (capacity × timeout, needs `timeoutMs`). Default 10,000. */
  readonly maxQueueSize?: number | "auto" | undefined;
  /** `"reject"` (default): one more item fails with `QUEUE_FULL`. `"wait"`: the call waits for room. */
  readonly onQueueFull?: "reject" | "wait" | undefined;
  /**
   * Under standing overload (items wait for more than five full runs while more arrives than is served) the `"newest"`
   * (default) go first, or those that arrived first as always: `"arrival"`. Lanes and `orderKey` are obeyed either way.
   */
  readonly overloadOrder?: "newest" | "arrival" | undefined;
  /** Weight up to which a batch is filled; a heavier item runs alone. Needs `weigh`. Default none: `auto` chooses. */
  readonly maxBatchWeight?: number | undefined;
  /** A heavier item is refused with `ITEM_TOO_LARGE`; needs `weigh`. Default none. */
  readonly maxItemWeight?: number | undefined;
  /** Weight of an item (tokens, bytes); finite, >= 0. Called once, on arrival. */
  readonly weigh?: ((item: In) => number) | undefined;
  /** How `maxBatchWeight` counts: `"sum"` (default), or `"padded"`: largest × count. */
  readonly batchWeight?: "sum" | "padded" | undefined;
  /** The caller's whole wait, in milliseconds. Default none. */
  readonly timeoutMs?: number | undefined;
  /**
   * The share of its timeout that a call may be expected to take, > 0 and <= 1: one that would take longer is refused at
   * once with `QUEUE_FULL`, from what batches cost and what waits before it. Default: none is refused for that.
   */
  readonly refuseLate?: number | undefined;
  /** One run, in milliseconds; past it the batch is given up with `RUN_TIMEOUT`. Default none. */
  readonly runTimeoutMs?: number | undefined;
  /** When to dispatch. Default `auto()`. An instance belongs to one batcher. */
  readonly policy?: Policy | undefined;
  /** `"fail"` (default): every caller of the batch gets the same error. `"bisect"`: isolate the bad items. */
  readonly onBatchError?: "fail" | "bisect" | undefined;
  /** Runs the lone item that a bisection isolated, instead of the batch function. */
  readonly runOne?: ((item: In, context: BatchContext) => Out | Error | PromiseLike<Out | Error>) | undefined;
  /** Whether an error can be the fault of single items. Default: not for errors of the service itself. */
  readonly shouldBisect?: ((error: unknown) => boolean) | undefined;
  /** Most extra runs of one bisection; integer >= 0. Default 8·⌈log2 n⌉. */
  readonly maxBisectRuns?: number | undefined;
  /** Items of different groups never share a batch; compared as in a Map, `undefined` is a group too. */
  readonly groupKey?: ((item: In) => unknown) | undefined;
  /** Items of one key run in order, never in two batches at once; `undefined` = no order. */
  readonly orderKey?: ((item: In) => unknown) | undefined;
  /** Equal items share one place and one result; `undefined` = not shared. */
  readonly dedupeKey?: ((item: In) => unknown) | undefined;
  /** Which equal items a call joins: one that is `"waiting"` (default), or `"running"` too; for pure reads only. */
  readonly dedupe?: "waiting" | "running" | undefined;
  /** The key of an item's result where the batch function returns a `Map`. Default: the item itself. */
  readonly resultKey?: ((item: In) => unknown) | undefined;
  /** An item whose key the `Map` lacks: `"undefined"` (default) is its result, or `"error"`: it fails with `MISSING_RESULT`. */
  readonly onMissing?: "undefined" | "error" | undefined;
  readonly rateLimit?: RateLimit | undefined;
  readonly price?: Price | undefined;
  /** Label in errors, stats and metrics. Default `"batcher"`. */
  readonly name?: string | undefined;
  readonly clock?: Clock | undefined;
  /** Aborting it closes the batcher. */
  readonly signal?: AbortSignal | undefined;
}

/** The default of an option that is not given. */
export const defaults = {
  maxBatchSize: 32,
  concurrency: 4,
  maxQueueSize: 10_000,
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
