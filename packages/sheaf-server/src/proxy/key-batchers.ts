import type { Batcher, BatchRecord, BatcherStats } from "sheaf";
import type { DashboardBatcher } from "../dashboard/observed.ts";
import { noCounts, type CachePart } from "../cache/cache-counts.ts";
import { ModelCache } from "../cache/model-cache.ts";
import { ResultCache } from "../cache/result-cache.ts";
import { Problem } from "../problems/problem.ts";
import { withoutStack } from "../problems/without-stack.ts";
import { defaultBatchSize, type Settings } from "../settings/settings.ts";
import { KeyBatcher, type RoutedCall } from "./key-batcher.ts";
import { sumOfStats } from "../shared/stats-sum.ts";
import type { Caller } from "../tenants/caller.ts";

/**
 * Most keys and models at once; a new one replaces the one that has been idle longest. Bounded because the page takes a snapshot of
 * each every second, at about 60 µs.
 */
const maxKeyBatchers = 200;

/** Most new models per second for each caller, or for each upstream key if callers bring their own. */
const mostOpenedPerS = 100;

/** What one key has for one model. */
export interface OfOneKey {
  readonly batcher: Pick<Batcher<never, unknown>, "subscribe" | "close" | "pending">;
  readonly stats: BatcherStats;
  /** Who opened it; each opener has a share of all. */
  readonly opener: object | string;
  readonly openedAtMs: number;
}

/** A batcher for each key and model. Metrics and the page show them as one, so that no key is revealed. */
export abstract class OfKeys<One extends OfOneKey> implements DashboardBatcher {
  abstract readonly name: string;
  abstract readonly maxBatchSize: number;
  protected readonly settings: Settings;
  /** Least recently used first. */
  readonly #keyBatchers = new Map<string, One>();
  readonly #listeners = new Set<(record: BatchRecord) => void>();
  /** Counts of batchers that are gone. */
  #gone: BatcherStats[] = [];
  #closing: Promise<boolean> | undefined;

  constructor(settings: Settings) {
    this.settings = settings;
  }

  protected abstract make(opener: object | string): One;

  get isDraining(): boolean {
    return this.#closing !== undefined;
  }

  /**
   * The batcher of an upstream key, given by its headers, and a model.
   * @throws {Problem} 503 while draining; 429 if no more keys and models fit, or no more of this caller's.
   */
  of(key: readonly unknown[], model: string, caller: Caller | undefined): One {
    if (this.isDraining) throw draining();
    const name = JSON.stringify([key, model]);
    const keyBatcher = this.#keyBatchers.get(name) ?? this.#open(caller, JSON.stringify(key));
    this.#keyBatchers.delete(name);
    this.#keyBatchers.set(name, keyBatcher);
    return keyBatcher;
  }

  subscribe(listener: (record: BatchRecord) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  stats(): BatcherStats {
    return sumOfStats(this.name, [
      ...this.#gone,
      ...[...this.#keyBatchers.values()].map((keyBatcher) => keyBatcher.stats),
    ]);
  }

  /** The figures of each key and model; no key is among them. */
  get models(): { readonly model: string; readonly stats: BatcherStats }[] {
    return [...this.#keyBatchers].map(([name, { stats }]) => ({
      model: (JSON.parse(name) as [unknown, string])[1],
      stats,
    }));
  }

  /** Finishes accepted calls; those that `graceMs` cuts off get `CLOSED`. Once. @returns whether nothing was cut off. */
  close(graceMs: number): Promise<boolean> {
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  #open(caller: Caller | undefined, key: string): One {
    // By key if possible: a key's tenants may be made up.
    const opener = caller?.key ?? caller?.tenant ?? key;
    this.#checkPace(opener);
    if (opener !== key) this.#checkShare(opener);
    if (this.#keyBatchers.size >= maxKeyBatchers) this.#dropIdle();
    const keyBatcher = this.make(opener);
    keyBatcher.batcher.subscribe((record) => {
      for (const listener of this.#listeners) listener(record);
    });
    return keyBatcher;
  }

  /** Requests that each named a new model made others wait seven times as long as with a known one. */
  #checkPace(opener: object | string): void {
    const fromMs = performance.now() - 1000;
    const isNew = (keyBatcher: One): boolean => keyBatcher.opener === opener && keyBatcher.openedAtMs > fromMs;
    if ([...this.#keyBatchers.values()].filter(isNew).length >= mostOpenedPerS)
      throw full(`this caller asked for ${mostOpenedPerS} new models in a second`);
  }

  /**
   * A caller may hold as many places as are free: each of n greedy callers gets 1/(n + 1) of them, so there is always room for
   * another (dynamic thresholds; Choudhury and Hahne, 1998).
   */
  #checkShare(opener: object | string): void {
    const busy = [...this.#keyBatchers.values()].filter((keyBatcher) => !isIdle(keyBatcher));
    const own = busy.filter((keyBatcher) => keyBatcher.opener === opener).length;
    if (own >= maxKeyBatchers - busy.length) throw full(`${own} models of this caller have calls that wait`);
  }

  #dropIdle(): void {
    for (const [key, keyBatcher] of this.#keyBatchers) {
      if (!isIdle(keyBatcher)) continue;
      this.#keyBatchers.delete(key);
      this.#gone = [sumOfStats(this.name, [...this.#gone, keyBatcher.stats])];
      void keyBatcher.batcher.close();
      return;
    }
    throw full(`${maxKeyBatchers} keys and models have calls that wait`);
  }

  async #close(graceMs: number): Promise<boolean> {
    const keyBatchers = [...this.#keyBatchers.values()];
    const rejected = (): number => keyBatchers.reduce((sum, keyBatcher) => sum + keyBatcher.stats.items.rejected, 0);
    const before = rejected();
    await Promise.all(keyBatchers.map(({ batcher }) => batcher.close({ graceMs })));
    return rejected() === before;
  }
}

/** Whether no caller waits for an answer. Checked for every batcher when a new one needs room. */
const isIdle = ({ batcher: { pending } }: OfOneKey): boolean => pending.queued === 0 && pending.inFlight === 0;

/** The batchers of embeddings. */
export class KeyBatchers extends OfKeys<KeyBatcher> {
  readonly name = "upstream";
  readonly maxBatchSize: number;
  /** The cache of all keys and models together. */
  readonly cache: CachePart | undefined;
  readonly #store: ResultCache | undefined;

  constructor(settings: Settings) {
    super(settings);
    this.maxBatchSize = settings.maxBatchSize ?? defaultBatchSize;
    const { cacheMaxBytes: maxBytes, cacheTtlMs: ttlMs } = settings;
    this.#store = maxBytes === 0 ? undefined : new ResultCache({ maxBytes });
    this.cache = this.#store && { counts: noCounts(), ttlMs };
  }

  protected make(opener: object | string): KeyBatcher {
    return new KeyBatcher(this.settings, this.#openCache(), opener);
  }

  /** A part for each key and model, so that no key gets another key's results. */
  #openCache(): ModelCache | undefined {
    if (this.#store === undefined) return undefined;
    // Not closed with its batcher: its entries can no longer be found and are evicted first. Searching the whole cache for them would
    // cost milliseconds for every new key.
    const contentOf = ({ input, group }: RoutedCall): unknown => [input, group];
    return new ModelCache(this.#store, { ...this.cache, contentOf });
  }
}

const full = (reason: string): Problem =>
  withoutStack(() => new Problem("QUEUE_FULL", `${reason}; retry in a second.`, { headers: { "retry-after": "1" } }));

export function draining(): Problem {
  return new Problem("DRAINING", "The proxy is shutting down; send the request to another instance.", {
    headers: { "retry-after": "1", connection: "close" },
  });
}
