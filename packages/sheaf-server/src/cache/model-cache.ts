import { noCounts, type CacheCounts, type CachePart } from "./cache-counts.ts";
import { itemKey } from "./item-key.ts";
import type { CacheUse } from "./cache-use.ts";
import type { ResultCache } from "./result-cache.ts";
import type { Served } from "./served.ts";

/** Who asks. */
interface Asking {
  /** Is told how many items were looked for, and found. */
  readonly cacheUse?: CacheUse | undefined;
}

type Version = () => string | undefined;

interface Look {
  readonly key: string;
  readonly askedAtMs: number;
  readonly kept: Served | undefined;
}

/**
 * One model's part of the cache, between its routes and its batcher. A model that is loaded again has another part: it
 * starts empty, and what still runs on the old one is not found.
 */
export class ModelCache implements CachePart {
  readonly counts: CacheCounts;
  readonly ttlMs: number | undefined;
  readonly store: ResultCache;
  /** In every key: no other part has the same, and no other version. */
  #part: string;
  readonly #versionOf: Version | undefined;
  #version: string | undefined;
  /** Keys of the items that run now. */
  readonly #keys: Map<unknown, string> = new Map();
  #isClosed = false;

  /**
   * Results do not age without `ttlMs` (CACHE_TTL_MS); `counts` may be shared with other parts. When `versionOf` gives
   * another version, results of the one before are forgotten; undefined: it is not known, and the last one counts.
   */
  constructor(
    store: ResultCache,
    { ttlMs, counts = noCounts(), versionOf }: Partial<CachePart> & { readonly versionOf?: Version | undefined } = {},
  ) {
    this.store = store;
    this.ttlMs = ttlMs;
    this.counts = counts;
    this.#versionOf = versionOf;
    this.#part = store.nextPart();
  }

  /**
   * The key of an item, the same for equal items: the `dedupeKey` of the batcher that runs the misses, so that equal items
   * in flight share a run. It is not computed again for an item that the cache has just looked for. Can be destructured.
   */
  readonly keyOf = (item: unknown): string => this.#keys.get(item) ?? this.#part + itemKey(item);

  /** The result of one item: kept, or run now and then kept. An error is not kept. */
  async infer(item: unknown, { cacheUse }: Asking, run: () => Promise<Served>): Promise<Served> {
    const look = this.#look(item);
    const { kept } = look;
    cacheUse?.note(1, kept === undefined ? 0 : 1);
    if (kept !== undefined) return kept;
    const served = await this.#withKeys([item], [look], run);
    this.#keep(look, served);
    return served;
  }

  /** The outcomes of several items, in order; `run` gets those that are not kept. */
  async inferAll<Item>(
    items: readonly Item[],
    { cacheUse }: Asking,
    run: (missing: readonly Item[]) => Promise<PromiseSettledResult<Served>[]>,
  ): Promise<PromiseSettledResult<Served>[]> {
    const looks = items.map((item) => this.#look(item));
    const missing = items.filter((_, i) => looks[i]!.kept === undefined);
    const misses = looks.filter(({ kept }) => kept === undefined);
    cacheUse?.note(items.length, items.length - missing.length);
    const ran = missing.length === 0 ? [] : await this.#withKeys(missing, misses, () => run(missing));
    let next = 0;
    return looks.map((look) => {
      const { kept } = look;
      if (kept !== undefined) return { status: "fulfilled", value: kept };
      const outcome = ran[next++]!;
      if (outcome.status === "fulfilled") this.#keep(look, outcome.value);
      return outcome;
    });
  }

  /** Releases its results, and keeps no others. */
  close(): void {
    this.#isClosed = true;
    this.store.removeAll(this.counts);
  }

  /** `keyOf` knows the keys of these items while `run` goes on. */
  async #withKeys<T>(items: readonly unknown[], looks: readonly Look[], run: () => Promise<T>): Promise<T> {
    items.forEach((item, i) => {
      // A Map takes 0 and -0 for the same number.
      if (typeof item !== "number") this.#keys.set(item, looks[i]!.key);
    });
    try {
      return await run();
    } finally {
      for (const item of items) this.#keys.delete(item);
    }
  }

  #look(item: unknown): Look {
    const { clock } = this.store;
    const askedAtMs = clock.now();
    this.#followVersion();
    const key = this.#part + itemKey(item);
    const kept = this.store.find(key);
    const tookMs = clock.now() - askedAtMs;
    const { counts } = this;
    if (kept === undefined) {
      counts.misses++;
      counts.missMs += tookMs;
    } else {
      counts.hits++;
      counts.hitMs += tookMs;
      counts.savedRuns += kept.runShare;
    }
    return { key, askedAtMs, kept: kept?.served };
  }

  #followVersion(): void {
    const version = this.#versionOf?.();
    if (version === undefined || version === this.#version) return;
    this.#version = version;
    this.#part = this.store.nextPart();
    this.store.removeAll(this.counts);
  }

  #keep({ key, askedAtMs }: Look, served: Served): void {
    const { counts, ttlMs } = this;
    // Of several calls that shared a run the first keeps its result. Its age counts from its call: a list has the results
    // of all its items only with the last of them.
    if (!this.#isClosed && !this.store.has(key)) this.store.keep(key, served, { counts, ttlMs, askedAtMs });
  }
}
