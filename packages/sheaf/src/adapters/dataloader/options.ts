import type { BatchResults, Clock, Policy, RateLimit } from "../../index.ts";
import { check, checkFunction, checkNames } from "../../shared/checks.ts";
import { describe } from "../../shared/describe.ts";

/** The cache of a loader's promises: a `Map`, or an object with these methods of one. */
export interface CacheMap<C, V> {
  get(key: C): V | undefined | void;
  set(key: C, value: V): unknown;
  delete(key: C): unknown;
  clear(): unknown;
}

/**
 * Keys in, a promise of one value or `Error` a key: in the order of the keys, or in a `Map` by cache key, where a key that
 * is missing is `undefined`. Called with the loader as `this`.
 */
export type BatchLoadFn<K, V> = (keys: readonly K[]) => PromiseLike<BatchResults<V>> | BatchResults<V>;

/** Options of dataloader, with its defaults, and some of the batcher's own. */
export interface DataLoaderOptions<K, V, C = K> {
  /** Default true; false is the same as `maxBatchSize: 1`. */
  readonly batch?: boolean | undefined;
  /** Most keys in a batch; >= 1. Default Infinity. */
  readonly maxBatchSize?: number | undefined;
  /**
   * Called before each batch; it calls its argument when that batch is to go. Default: at the end of the turn of the
   * event loop.
   */
  readonly batchScheduleFn?: ((callback: () => void) => void) | undefined;
  /** Default true; false is the same as `cacheMap: null`. */
  readonly cache?: boolean | undefined;
  /** The cache's key of a key. Default: the key itself. */
  readonly cacheKeyFn?: ((key: K) => C) | undefined;
  /** Default a new `Map`, which grows without end; null caches nothing. */
  readonly cacheMap?: CacheMap<C, Promise<V>> | null | undefined;
  readonly name?: string | null | undefined;
  /** Batches in flight; keys beyond them wait and fill the next batch. Default Infinity. */
  readonly concurrency?: number | undefined;
  /** When keys go. Default: all that wait, at once. Not together with `batchScheduleFn`. */
  readonly policy?: Policy | undefined;
  /** As the batcher's. */
  readonly maxWaitMs?: number | undefined;
  /** As the batcher's; a run that is given up is not cached. */
  readonly runTimeoutMs?: number | undefined;
  /** As the batcher's. */
  readonly rateLimit?: RateLimit | undefined;
  readonly clock?: Clock | undefined;
}

const names: Record<keyof DataLoaderOptions<unknown, unknown>, true> = {
  batch: true,
  maxBatchSize: true,
  batchScheduleFn: true,
  cache: true,
  cacheKeyFn: true,
  cacheMap: true,
  name: true,
  concurrency: true,
  policy: true,
  maxWaitMs: true,
  runTimeoutMs: true,
  rateLimit: true,
  clock: true,
};

/** @throws {TypeError} for a wrong option that only a loader has; a batcher checks the others. */
export function checkLoaderOptions<K, V, C>(batchLoadFn: unknown, options: DataLoaderOptions<K, V, C>): void {
  const { maxBatchSize, batchScheduleFn, cacheKeyFn, cacheMap, policy } = options;
  if (typeof batchLoadFn !== "function") {
    throw new TypeError(
      `DataLoader needs a function that takes an array of keys and promises an array of values, got ${describe(batchLoadFn)}`,
    );
  }
  checkNames(options, names);
  const isSize = maxBatchSize === undefined || (typeof maxBatchSize === "number" && maxBatchSize >= 1);
  check(isSize, "maxBatchSize", "a positive number", maxBatchSize, TypeError);
  for (const [name, value] of Object.entries({ batchScheduleFn, cacheKeyFn })) {
    if (value !== undefined) checkFunction(name, value);
  }
  if (cacheMap !== undefined && cacheMap !== null) {
    const methods = ["get", "set", "delete", "clear"] as const;
    const missing = methods.filter((method) => typeof cacheMap[method] !== "function");
    if (missing.length > 0) throw new TypeError(`cacheMap lacks the methods ${missing.join(", ")}`);
  }
  if (batchScheduleFn !== undefined && policy !== undefined) {
    throw new TypeError("batchScheduleFn and policy both say when keys go; give one of them");
  }
}
