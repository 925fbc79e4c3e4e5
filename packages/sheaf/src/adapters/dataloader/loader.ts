import { assembleBatcher } from "../../core/assemble-batcher.ts";
import { systemClock, type Clock } from "../../core/runtime/runtime.ts";
import { checkResults } from "../../core/dispatch/run.ts";
import { greedy, type BatchContext, type Batcher, type BatcherStats } from "../../index.ts";
import type { BatchResults } from "../../core/contract/executor.ts";
import { describe } from "../../shared/describe.ts";
import { checkLoaderOptions, type BatchLoadFn, type CacheMap, type DataLoaderOptions } from "./options.ts";

/** A key that waits or runs, and the cache hits that resolve together with it. */
interface Entry<K> {
  readonly key: K;
  hits: (() => void)[] | undefined;
  dispatched: boolean;
}

/** Keys and cache hits that one callback of `batchScheduleFn` sends; later ones wait for the next. */
interface Frame<K, V> {
  readonly loads: { readonly entry: Entry<K>; resolve(value: Promise<V>): void }[];
  readonly hits: (() => void)[];
  isScheduled: boolean;
}

/**
 * A drop-in for the class of the npm package `dataloader`, on Sheaf's batcher: all loads of one turn of the event loop
 * share a batch, and each key is loaded once. Make one for each request where callers may see different rows.
 */
export class DataLoader<K, V, C = K> {
  readonly name: string | null;
  readonly #batcher: Batcher<Entry<K>, V>;
  readonly #batchLoadFn: BatchLoadFn<K, V>;
  readonly #batchScheduleFn: ((callback: () => void) => void) | undefined;
  readonly #cacheKeyFn: ((key: K) => C) | undefined;
  readonly #cacheMap: CacheMap<C, Promise<V>> | null;
  readonly #clock: Clock;
  readonly #givesUp: boolean;
  readonly #maxBatchSize: number;
  #latest: Entry<K> | undefined = undefined;
  /** Cache hits of a turn in which no key has had to be loaded; the first such key takes them over. */
  #idleHits: (() => void)[] | undefined = undefined;
  /** Only with `batchScheduleFn`: the keys and cache hits that its next callback sends. */
  #frame: Frame<K, V> | undefined = undefined;

  /** @throws {TypeError | RangeError} for a wrong option; the message quotes its value. */
  constructor(batchLoadFn: BatchLoadFn<K, V>, options: DataLoaderOptions<K, V, C> = {}) {
    checkLoaderOptions(batchLoadFn, options);
    const {
      batch = true,
      maxBatchSize = Infinity,
      batchScheduleFn,
      cache = true,
      cacheKeyFn,
      cacheMap,
      name,
    } = options;
    const { concurrency = Infinity, policy, maxWaitMs, runTimeoutMs, rateLimit, clock = systemClock } = options;
    this.name = name ?? null;
    this.#batchLoadFn = batchLoadFn;
    this.#batchScheduleFn = batchScheduleFn;
    this.#cacheKeyFn = cacheKeyFn;
    this.#cacheMap = cache ? (cacheMap === undefined ? new Map<C, Promise<V>>() : cacheMap) : null;
    this.#clock = clock;
    this.#givesUp = runTimeoutMs !== undefined;
    this.#maxBatchSize = batch ? Math.floor(maxBatchSize) : 1;
    this.#batcher = assembleBatcher<Entry<K>, V>(
      (entries, context) => this.#load(entries, context),
      {
        name: name ?? "DataLoader",
        maxBatchSize: this.#maxBatchSize,
        // The caller holds the keys already, and a loader must not refuse any: there is no bound here.
        maxQueueSize: Infinity,
        concurrency,
        policy,
        maxWaitMs,
        runTimeoutMs,
        rateLimit,
        resultKey: ({ key }) => this.#cacheKeyOf(key),
        clock,
      },
      greedy,
    );
  }

  /**
   * The value of a key, from the cache or with the batch of this turn.
   * @throws {TypeError} at once for null and undefined.
   */
  load(key: K): Promise<V> {
    if (key === null || key === undefined) {
      throw new TypeError(`load(key) needs a key, got ${describe(key)}`);
    }
    const cacheMap = this.#cacheMap;
    if (cacheMap === null) return this.#enqueue(key);
    const cacheKey = this.#cacheKeyOf(key);
    const cached = cacheMap.get(cacheKey);
    if (cached) return this.#withItsFrame(cached);
    const promise = this.#enqueue(key);
    cacheMap.set(cacheKey, promise);
    return promise;
  }

  /** Values in the order of the keys, with an `Error` in the place of a key that failed. Never rejects. */
  loadMany(keys: ArrayLike<K>): Promise<(V | Error)[]> {
    if (typeof keys !== "object" || keys === null || !Number.isInteger(keys.length)) {
      throw new TypeError(`loadMany(keys) needs an array of keys, got ${describe(keys)}`);
    }
    return Promise.all(Array.from(keys, (key) => this.load(key).catch((error: unknown) => error as Error)));
  }

  /** Puts a value (or the promise of one, or an `Error`) into the cache, unless the key is there. */
  prime(key: K, value: V | PromiseLike<V> | Error): this {
    const cacheMap = this.#cacheMap;
    if (cacheMap === null) return this;
    const cacheKey = this.#cacheKeyOf(key);
    if (cacheMap.get(cacheKey) !== undefined) return this;
    const promise = value instanceof Error ? Promise.reject(value) : Promise.resolve(value);
    // Primed on purpose: it need not have been loaded before.
    if (value instanceof Error) promise.catch(() => undefined);
    cacheMap.set(cacheKey, promise);
    return this;
  }

  clear(key: K): this {
    this.#cacheMap?.delete(this.#cacheKeyOf(key));
    return this;
  }

  clearAll(): this {
    this.#cacheMap?.clear();
    return this;
  }

  /** Statistics of the batches, as of every batcher; cache hits do not count. */
  stats(): BatcherStats {
    return this.#batcher.stats();
  }

  #cacheKeyOf(key: K): C {
    return this.#cacheKeyFn === undefined ? (key as unknown as C) : this.#cacheKeyFn(key);
  }

  #enqueue(key: K): Promise<V> {
    const entry: Entry<K> = { key, hits: this.#idleHits, dispatched: false };
    if (this.#batchScheduleFn !== undefined) return this.#enqueueInFrame(entry);
    this.#idleHits = undefined;
    this.#latest = entry;
    return this.#batcher(entry);
  }

  /**
   * A cached value resolves with the batch of its turn: the next loads of its callers, from a cached value or a fresh one,
   * can share a batch again.
   */
  #withItsFrame(cached: Promise<V>): Promise<V> {
    return new Promise((resolve) => {
      const hit = (): void => resolve(cached);
      const latest = this.#latest;
      if (this.#batchScheduleFn !== undefined) {
        const frame = this.#openFrame();
        frame.hits.push(hit);
        this.#schedule(frame);
      } else if (latest !== undefined && !latest.dispatched) {
        (latest.hits ??= []).push(hit);
      } else if (this.#idleHits === undefined) {
        this.#idleHits = [hit];
        this.#clock.after(0, () => this.#resolveIdleHits());
      } else {
        this.#idleHits.push(hit);
      }
    });
  }

  #enqueueInFrame(entry: Entry<K>): Promise<V> {
    const frame = this.#openFrame();
    const promise = new Promise<V>((resolve) => frame.loads.push({ entry, resolve }));
    this.#schedule(frame);
    return promise;
  }

  #openFrame(): Frame<K, V> {
    const frame = this.#frame;
    if (frame !== undefined && !(frame.isScheduled && frame.loads.length >= this.#maxBatchSize)) return frame;
    return (this.#frame = { loads: [], hits: [], isScheduled: false });
  }

  #schedule(frame: Frame<K, V>): void {
    if (frame.isScheduled) return;
    frame.isScheduled = true;
    try {
      this.#batchScheduleFn!(() => this.#send(frame));
    } catch (error) {
      // Its callback never comes: the waiting keys go with the next load, which schedules again.
      frame.isScheduled = false;
      throw error;
    }
  }

  #send(frame: Frame<K, V>): void {
    if (this.#frame === frame) this.#frame = undefined;
    const loads = frame.loads.splice(0);
    const hits = frame.hits.splice(0);
    if (loads.length === 0) resolveAll(hits);
    else loads[0]!.entry.hits = hits;
    for (const { entry, resolve } of loads) resolve(this.#batcher(entry));
  }

  #resolveIdleHits(): void {
    const hits = this.#idleHits;
    this.#idleHits = undefined;
    resolveAll(hits);
  }

  async #load(entries: readonly Entry<K>[], context: BatchContext): Promise<BatchResults<V>> {
    const keys: K[] = [];
    for (const entry of entries) {
      entry.dispatched = true;
      keys.push(entry.key);
    }
    // Read only if the run can be given up: the signal is created on demand.
    if (this.#givesUp) context.signal.addEventListener("abort", () => this.#forget(keys), { once: true });
    try {
      const values = await this.#batchLoadFn(keys);
      if (!(values instanceof Map)) checkResults(values, keys.length, this.#batcher.name);
      return values;
    } catch (error) {
      // An Error in a place stays cached; the error of a whole batch may be gone the next time.
      this.#forget(keys);
      throw error;
    } finally {
      for (const entry of entries) resolveAll(entry.hits);
    }
  }

  #forget(keys: readonly K[]): void {
    for (const key of keys) this.clear(key);
  }
}

function resolveAll(hits: readonly (() => void)[] | undefined): void {
  if (hits !== undefined) for (const hit of hits) hit();
}
