import type { Clock, Policy, RateLimit } from "../../index.ts";
import type { BatchResults } from "../../core/contract/executor.ts";
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
  /**
   * False is the same as `maxBatchSize: 1`.
   * @default true
   * @see maxBatchSize
   */
  readonly batch?: boolean | undefined;
  /**
   * Most keys in a batch; >= 1.
   * @default Infinity
   */
  readonly maxBatchSize?: number | undefined;
  /**
   * Called before each batch; it calls its argument when that batch is to go.
   * @default at the end of the turn of the event loop
   * @example
   * new DataLoader(load, { batchScheduleFn: (callback) => setTimeout(callback, 5) });
   * @see policy
   */
  readonly batchScheduleFn?: ((callback: () => void) => void) | undefined;
  /**
   * False is the same as `cacheMap: null`.
   * @default true
   * @see cacheMap
   */
  readonly cache?: boolean | undefined;
  /**
   * The cache's key of a key.
   * @default the key itself
   * @example
   * new DataLoader(load, { cacheKeyFn: ({ id }) => id });
   */
  readonly cacheKeyFn?: ((key: K) => C) | undefined;
  /**
   * Keeps the promises; `null` caches nothing.
   * @default a new `Map`, which grows without end
   * @see cache
   */
  readonly cacheMap?: CacheMap<C, Promise<V>> | null | undefined;
  /**
   * The loader's `name`, and its label in errors, statistics and metrics.
   * @default null; the label is then `"DataLoader"`
   */
  readonly name?: string | null | undefined;
  /**
   * Batches in flight; keys beyond them wait and fill the next batch.
   * @default Infinity
   */
  readonly concurrency?: number | undefined;
  /**
   * Decides when keys go. Not together with `batchScheduleFn`.
   * @default all waiting keys go at once
   * @see batchScheduleFn
   * @see maxWaitMs
   */
  readonly policy?: Policy | undefined;
  /**
   * Cap on voluntary holding, in milliseconds.
   * @default none
   * @see policy
   */
  readonly maxWaitMs?: number | undefined;
  /**
   * Longest run, in milliseconds; past it the batch is given up with `RUN_TIMEOUT`, and not cached.
   * @default none
   */
  readonly runTimeoutMs?: number | undefined;
  /**
   * Limits dispatch to a rate; keys wait and batches fill meanwhile.
   * @default none
   * @example
   * new DataLoader(load, { rateLimit: { runs: 10, perMs: 1000 } });
   */
  readonly rateLimit?: RateLimit | readonly RateLimit[] | undefined;
  /**
   * The source of time, for tests and simulations.
   * @default the system's clock
   */
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
      `DataLoader needs a function that takes an array of keys and returns a promise of an array of values, got ${describe(batchLoadFn)}`,
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
    throw new TypeError("batchScheduleFn and policy both decide when keys go; give only one of them");
  }
}
