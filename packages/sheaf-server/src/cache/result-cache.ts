import { LRUCache } from "lru-cache";
import type { CacheCounts } from "./cache-counts.ts";
import type { KeptResult, KeptResults, Origin } from "./kept-results.ts";
import { copyOfResult } from "./result-copy.ts";
import type { Served } from "./served.ts";

/** A result that is kept, as it is served. */
export interface Kept {
  readonly served: Served;
  /** Its share of the run that made it. */
  readonly runShare: number;
  readonly bytes: number;
  readonly counts: CacheCounts;
  /** Where a later process finds it; undefined: nowhere. */
  readonly origin: Origin | undefined;
}

export interface KeepOptions {
  /** Whose result it is: an API key, or undefined for all without one. */
  readonly owner: object | undefined;
  readonly counts: CacheCounts;
  /** Default: it does not age. */
  readonly ttlMs?: number | undefined;
  /** By the cache's clock. */
  readonly askedAtMs: number;
  /** Default: a later process does not find it. */
  readonly origin?: Origin | undefined;
}

/** What a result takes beside its own memory: its key and its places in the cache's lists. */
const entryBytes = 400;

export interface ResultCacheOptions {
  /** Of all results together, CACHE_MAX_BYTES; integer >= 1. */
  readonly maxBytes: number;
  /** Where the age of results comes from, in milliseconds. Default `performance`. */
  readonly clock?: { now(): number } | undefined;
  /** Where results outlive the process. Default: nowhere. */
  readonly onDisk?: KeptResults | undefined;
}

interface Part {
  readonly kept: LRUCache<string, Kept>;
  usedAtMs: number;
}

/** An owner that has asked for nothing for this long makes room before any other. */
const idleMs = 60_000;

/** No result takes more than this part of the store, or 16 KiB in a small one. */
const [largestPart, alwaysKeptBytes] = [1 / 100, 16_384];

/**
 * Results of all models of a server in one bounded store. Where it is full, the owner with the most makes room, by what it has not
 * asked for the longest: nobody pushes out what others use.
 */
export class ResultCache {
  readonly maxBytes: number;
  readonly clock: { now(): number };
  readonly onDisk: KeptResults | undefined;
  readonly #owners = new Map<object | undefined, Part>();
  #bytes = 0;
  #parts = 0;

  constructor({ maxBytes, clock = performance, onDisk }: ResultCacheOptions) {
    this.maxBytes = maxBytes;
    this.clock = clock;
    this.onDisk = onDisk;
    if (onDisk !== undefined) onDisk.held = () => this.#withOrigin();
  }

  /** A name that no other part of the cache has, and no later one will. */
  nextPart(): string {
    return String(this.#parts++);
  }

  find(key: string, owner: object | undefined): Kept | undefined {
    const part = this.#owners.get(owner);
    if (part === undefined) return undefined;
    part.usedAtMs = this.clock.now();
    return part.kept.get(key);
  }

  has(key: string, owner: object | undefined): boolean {
    return this.#owners.get(owner)?.kept.has(key) === true;
  }

  /** Keeps a copy of a result, if it fits in and can be copied; its age counts from `askedAtMs`. */
  keep(key: string, { value, batchSize }: Served, options: KeepOptions): void {
    const copy = copyOfResult(value);
    if (copy === undefined) return;
    const bytes = entryBytes + copy.bytes;
    if (bytes > Math.min(this.maxBytes, Math.max(alwaysKeptBytes, this.maxBytes * largestPart))) return;
    this.#put(key, copy.value, bytes, batchSize, options);
    if (options.origin !== undefined) this.onDisk?.add({ ...options.origin, value: copy.value, batchSize });
  }

  /** A result of an earlier process. */
  restore(key: string, { value, batchSize }: KeptResult, options: KeepOptions): void {
    this.#put(key, value, entryBytes + (copyOfResult(value)?.bytes ?? 0), batchSize, options);
  }

  #put(key: string, value: unknown, bytes: number, batchSize: number, options: KeepOptions): void {
    const { owner, counts, ttlMs = 0, askedAtMs, origin } = options;
    const part = this.#owners.get(owner) ?? this.#newPart();
    while (this.#bytes + bytes > this.maxBytes) this.#makeRoom();
    counts.items++;
    counts.bytes += bytes;
    const served = { value, queueMs: 0, runMs: 0, batchSize: 0 };
    const kept = { served, runShare: 1 / batchSize, bytes, counts, origin };
    part.kept.set(key, kept, { size: bytes, ttl: ttlMs, start: askedAtMs });
    this.#bytes += bytes;
    this.#owners.set(owner, part);
  }

  /** Least recently asked for first. */
  *#withOrigin(): Generator<KeptResult> {
    for (const { kept } of this.#owners.values())
      for (const { origin, served, runShare } of kept.rvalues() as Generator<Kept>)
        if (origin !== undefined) yield { ...origin, value: served.value, batchSize: Math.round(1 / runShare) };
  }

  #newPart(): Part {
    const kept = new LRUCache<string, Kept>({
      maxSize: this.maxBytes,
      // A timer for each millisecond in which something was asked for costs more than the clock.
      ttlResolution: 0,
      perf: this.clock,
      dispose: ({ bytes, counts }, _key, reason) => {
        this.#bytes -= bytes;
        counts.items--;
        counts.bytes -= bytes;
        if (reason === "evict") counts.evictions++;
      },
    });
    return { kept, usedAtMs: this.clock.now() };
  }

  /** Drops one result: of the owner that has been idle for longest, or else of the one with the most. */
  #makeRoom(): void {
    for (const [owner, { kept }] of this.#owners) if (kept.size === 0) this.#owners.delete(owner);
    const parts = [...this.#owners.values()];
    const idlest = parts.reduce((a, b) => (b.usedAtMs < a.usedAtMs ? b : a));
    const isIdle = this.clock.now() - idlest.usedAtMs > idleMs;
    const from = isIdle ? idlest : parts.reduce((a, b) => (b.kept.calculatedSize > a.kept.calculatedSize ? b : a));
    from.kept.pop();
  }

  removeAll(counts: CacheCounts): void {
    for (const { kept } of this.#owners.values()) {
      // Entries that are too old are not listed.
      kept.purgeStale();
      const keys = [...kept.entries()].filter(([, one]) => one.counts === counts).map(([key]) => key);
      for (const key of keys) kept.delete(key);
    }
  }
}
