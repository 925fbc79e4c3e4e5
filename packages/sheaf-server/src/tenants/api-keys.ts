import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { Meter } from "./meter.ts";
import { ownKeyName, type KeyTerms } from "./keys-file.ts";

/** SHA-256. A fast hash is enough, because keys have 256 random bits. */
export const digestOf = (key: string | Buffer): Buffer => createHash("sha256").update(key).digest();

/** A key, or several with the same name. The object stays the same when its terms change. */
export class ApiKey {
  terms: KeyTerms;
  /** The bounds of all its tenants together. */
  readonly meter: Meter;

  constructor(terms: KeyTerms) {
    this.terms = terms;
    this.meter = new Meter(terms.bounds);
  }

  /** Whether the digest is still one of its keys: neither replaced nor removed. */
  has(digest: Buffer): boolean {
    return this.terms.digests.some((known) => known.equals(digest));
  }
}

export class ApiKeys {
  readonly #own: KeyTerms | undefined;
  #byName: ReadonlyMap<string, ApiKey> = new Map();
  #byPlace: ReadonlyMap<string, readonly SentKey[]> = new Map();
  /** Makes look-up times useless to an attacker: without the salt nobody knows where a digest is stored. */
  readonly #salt = randomBytes(32);

  /** `own` is API_KEY, a single tenant that may do everything. */
  constructor(own: string | undefined) {
    this.#own = own === undefined ? undefined : { ...ownTerms, digests: [digestOf(own)] };
    this.replace([]);
  }

  /** Replaces all keys but API_KEY. */
  replace(keys: readonly KeyTerms[]): void {
    const byName = new Map<string, ApiKey>();
    const byPlace = new Map<string, SentKey[]>();
    for (const terms of this.#own === undefined ? keys : [this.#own, ...keys]) {
      const key = this.#byName.get(terms.name) ?? new ApiKey(terms);
      key.terms = terms;
      key.meter.bounds = terms.bounds;
      byName.set(terms.name, key);
      for (const digest of terms.digests) {
        const place = this.#placeOf(digest);
        byPlace.set(place, [...(byPlace.get(place) ?? []), { digest, key }]);
      }
    }
    for (const [name, key] of this.#byName) if (!byName.has(name)) key.terms = { ...key.terms, digests: [] };
    this.#byName = byName;
    this.#byPlace = byPlace;
  }

  /** The key that a request sent; undefined if it is unknown. */
  find(given: string): SentKey | undefined {
    const digest = digestOf(given);
    return this.#byPlace.get(this.#placeOf(digest))?.find((known) => timingSafeEqual(known.digest, digest));
  }

  /** The key of this name as if it had been sent; undefined where there is none. */
  named(name: string): SentKey | undefined {
    const key = this.#byName.get(name);
    const digest = key?.terms.digests[0];
    return key === undefined || digest === undefined ? undefined : { digest, key };
  }

  #placeOf(digest: Buffer): string {
    return createHash("sha256").update(this.#salt).update(digest).digest("base64").slice(0, 12);
  }
}

/** A key as a request sent it: one of several of a name. */
export interface SentKey {
  readonly digest: Buffer;
  readonly key: ApiKey;
}

const ownTerms: Omit<KeyTerms, "digests"> = {
  name: ownKeyName,
  share: 1,
  highestLane: "immediate",
  isOperator: true,
  opens: [],
  bounds: {},
};
