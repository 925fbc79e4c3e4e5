import { noCounts, type CacheCounts, type CachePart } from "./cache-counts.ts";
import { itemKey } from "./item-key.ts";
import type { CacheUse } from "./cache-use.ts";
import type { ResultCache } from "./result-cache.ts";
import type { Served } from "./served.ts";

interface Asking {
  /** Is told how many items were looked for, and found. */
  readonly cacheUse?: CacheUse | undefined;
  readonly caller?: { readonly key: object | undefined } | undefined;
}

interface ModelCacheOptions extends Partial<CachePart> {
  /**
   * Results of another version are forgotten; undefined: it is not known, and the last one counts.
   * @default none: there is one version
   */
  readonly versionOf?: (() => string | undefined) | undefined;
  /**
   * The part of an item that its result depends on.
   * @default the item
   */
  readonly contentOf?: ((item: never) => unknown) | undefined;
  /**
   * The name of a part, by the version of the model and the API key, under which a later process finds its results.
   * @default none: they end with the process
   */
  readonly nameOf?: ((version: string | undefined, apiKey: object | undefined) => string | undefined) | undefined;
}

interface Look {
  readonly key: string;
  readonly owner: object | undefined;
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
  /** In the key of every item that was asked for without an API key: no other part has the same, and no other version. */
  #part: string;
  /** The same for each API key: no hit tells one what another has sent. */
  #parts: WeakMap<object, string> = new WeakMap();
  readonly #versionOf: ModelCacheOptions["versionOf"];
  readonly #nameOf: ModelCacheOptions["nameOf"];
  /** Names of the parts, where they have one. */
  readonly #names = new Map<string, string>();
  readonly #contentOf: ((item: unknown) => unknown) | undefined;
  #version: string | undefined;
  /** Keys of the items that run now, and who asked. */
  readonly #running: Map<unknown, { readonly key: string; readonly apiKey: object | undefined }> = new Map();
  #isClosed = false;

  /** Results do not age without `ttlMs` (CACHE_TTL_MS); `counts` may be shared with other parts. */
  constructor(
    store: ResultCache,
    { ttlMs, counts = noCounts(), versionOf, contentOf, nameOf }: ModelCacheOptions = {},
  ) {
    this.store = store;
    this.ttlMs = ttlMs;
    this.counts = counts;
    this.#versionOf = versionOf;
    this.#contentOf = contentOf as ((item: unknown) => unknown) | undefined;
    this.#nameOf = nameOf;
    this.#part = this.#newPart(undefined);
  }

  /**
   * The key of an item, the same for equal items of one API key: the `dedupeKey` of the batcher that runs the misses, so that
   * equal items in flight share a run. It is not computed again for an item that the cache has just looked for. Can be
   * destructured.
   */
  readonly keyOf = (item: unknown, apiKey?: object): string => {
    const running = this.#running.get(item);
    return running !== undefined && running.apiKey === apiKey ? running.key : this.#newKeyOf(item, apiKey);
  };

  /** The result of one item: kept, or run now and then kept. An error is not kept. */
  async infer(item: unknown, { cacheUse, caller }: Asking, run: () => Promise<Served>): Promise<Served> {
    const look = this.#look(item, caller?.key);
    const { kept } = look;
    cacheUse?.note(1, kept === undefined ? 0 : 1);
    if (kept !== undefined) return kept;
    const served = await this.#withKeys([item], [look], caller?.key, run);
    this.#keep(look, served);
    return served;
  }

  /** The outcomes of several items, in order; `run` gets those that are not kept. */
  async inferAll<Item>(
    items: readonly Item[],
    { cacheUse, caller }: Asking,
    run: (missing: readonly Item[]) => Promise<PromiseSettledResult<Served>[]>,
  ): Promise<PromiseSettledResult<Served>[]> {
    const looks = items.map((item) => this.#look(item, caller?.key));
    const missing = items.filter((_, i) => looks[i]!.kept === undefined);
    const misses = looks.filter(({ kept }) => kept === undefined);
    cacheUse?.note(items.length, items.length - missing.length);
    const ran = missing.length === 0 ? [] : await this.#withKeys(missing, misses, caller?.key, () => run(missing));
    let next = 0;
    return looks.map((look) => {
      const { kept } = look;
      if (kept !== undefined) return { status: "fulfilled", value: kept };
      const outcome = ran[next++]!;
      if (outcome.status === "fulfilled") this.#keep(look, outcome.value);
      return outcome;
    });
  }

  close(): void {
    this.#isClosed = true;
    this.store.removeAll(this.counts);
  }

  /** `keyOf` knows the keys of these items while `run` goes on. */
  async #withKeys<T>(
    items: readonly unknown[],
    looks: readonly Look[],
    apiKey: object | undefined,
    run: () => Promise<T>,
  ): Promise<T> {
    items.forEach((item, i) => {
      // A Map takes 0 and -0 for the same number.
      if (typeof item !== "number") this.#running.set(item, { key: looks[i]!.key, apiKey });
    });
    try {
      return await run();
    } finally {
      for (const item of items) this.#running.delete(item);
    }
  }

  #newKeyOf(item: unknown, apiKey: object | undefined): string {
    return this.#partOf(apiKey) + itemKey(this.#contentOf === undefined ? item : this.#contentOf(item));
  }

  #partOf(apiKey: object | undefined): string {
    if (apiKey === undefined) return this.#part;
    const known = this.#parts.get(apiKey);
    if (known !== undefined) return known;
    const part = this.#newPart(apiKey);
    this.#parts.set(apiKey, part);
    return part;
  }

  /** With the results of earlier processes. */
  #newPart(apiKey: object | undefined): string {
    const { store, counts, ttlMs } = this;
    const part = store.nextPart();
    const name = store.onDisk && this.#nameOf?.(this.#version, apiKey);
    if (name === undefined) return part;
    this.#names.set(part, name);
    for (const result of store.onDisk!.take(name)) {
      const ageMs = Date.now() - result.atMs;
      // A clock that was ahead then says nothing about the age.
      if (ageMs < 0 || (ttlMs !== undefined && ageMs >= ttlMs)) continue;
      const askedAtMs = store.clock.now() - ageMs;
      store.restore(part + result.key, result, { owner: apiKey, counts, ttlMs, askedAtMs, origin: result });
    }
    return part;
  }

  #look(item: unknown, apiKey: object | undefined): Look {
    const { clock } = this.store;
    const askedAtMs = clock.now();
    this.#followVersion();
    const key = this.#newKeyOf(item, apiKey);
    const kept = this.store.find(key, apiKey);
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
    return { key, owner: apiKey, askedAtMs, kept: kept?.served };
  }

  #followVersion(): void {
    const version = this.#versionOf?.();
    if (version === undefined || version === this.#version) return;
    this.#version = version;
    this.store.removeAll(this.counts);
    this.#names.clear();
    this.#part = this.#newPart(undefined);
    this.#parts = new WeakMap();
  }

  #keep({ key, owner, askedAtMs }: Look, served: Served): void {
    const { counts, ttlMs } = this;
    // Of several calls that shared a run the first keeps its result. Its age counts from its call: a list has the results
    // of all its items only with the last of them.
    if (this.#isClosed || this.store.has(key, owner)) return;
    const own = this.#partOf(owner);
    const part = this.#names.get(own);
    const origin = part === undefined ? undefined : { part, key: key.slice(own.length), atMs: Date.now() };
    this.store.keep(key, served, { owner, counts, ttlMs, askedAtMs, origin });
  }
}
