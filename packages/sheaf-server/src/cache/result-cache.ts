import { LRUCache } from "lru-cache";
import type { CacheCounts } from "./cache-counts.ts";
import { copyOfResult } from "./result-copy.ts";
import type { Served } from "./served.ts";

/** A result that is kept, as it is served. */
export interface Kept {
  readonly served: Served;
  /** Its share of the run that made it. */
  readonly runShare: number;
  readonly bytes: number;
  readonly counts: CacheCounts;
}

export interface KeepOptions {
  readonly counts: CacheCounts;
  /** Default: it does not age. */
  readonly ttlMs?: number | undefined;
  /** By the cache's clock. */
  readonly askedAtMs: number;
}

/** What a result takes beside its own memory: its key and its places in the cache's lists. */
const entryBytes = 400;

export interface ResultCacheOptions {
  /** Of all results together, CACHE_MAX_BYTES; integer >= 1. */
  readonly maxBytes: number;
  /** Where the age of results comes from, in milliseconds. Default `performance`. */
  readonly clock?: { now(): number } | undefined;
}

/** Results of all models of a server in one bounded store: those that were not asked for the longest go first. */
export class ResultCache {
  readonly maxBytes: number;
  readonly clock: { now(): number };
  readonly #kept: LRUCache<string, Kept>;
  #parts = 0;

  constructor({ maxBytes, clock = performance }: ResultCacheOptions) {
    this.maxBytes = maxBytes;
    this.clock = clock;
    this.#kept = new LRUCache({
      maxSize: maxBytes,
      // A timer for each millisecond in which something was asked for costs more than the clock.
      ttlResolution: 0,
      perf: clock,
      dispose: ({ bytes, counts }, _key, reason) => {
        counts.items--;
        counts.bytes -= bytes;
        if (reason === "evict") counts.evictions++;
      },
    });
  }

  /** A name that no other part of the cache has, and no later one will. */
  nextPart(): string {
    return String(this.#parts++);
  }

  find(key: string): Kept | undefined {
    return this.#kept.get(key);
  }

  has(key: string): boolean {
    return this.#kept.has(key);
  }

  /** Keeps a copy of a result, if it fits in and can be copied; its age counts from `askedAtMs`. */
  keep(key: string, { value, batchSize }: Served, { counts, ttlMs = 0, askedAtMs }: KeepOptions): void {
    const copy = copyOfResult(value);
    if (copy === undefined) return;
    const bytes = entryBytes + copy.bytes;
    if (bytes > this.maxBytes) return;
    counts.items++;
    counts.bytes += bytes;
    const served = { value: copy.value, queueMs: 0, runMs: 0, batchSize: 0 };
    const kept = { served, runShare: 1 / batchSize, bytes, counts };
    this.#kept.set(key, kept, { size: bytes, ttl: ttlMs, start: askedAtMs });
  }

  /** Removes all that was kept with these counts. */
  removeAll(counts: CacheCounts): void {
    // Entries that are too old are not listed.
    this.#kept.purgeStale();
    const keys = [...this.#kept.entries()].filter(([, kept]) => kept.counts === counts).map(([key]) => key);
    for (const key of keys) this.#kept.delete(key);
  }
}
