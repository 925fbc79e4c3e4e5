import { unwatchFile, watchFile } from "node:fs";
import { invalid, messageOf, Problem } from "../problems/problem.ts";
import type { Settings } from "../settings/settings.ts";
import { ApiKeys, type SentKey } from "./api-keys.ts";
import { Caller, keyIsGone } from "./caller.ts";
import { readKeysFile, type KeyTerms } from "./keys-file.ts";
import type { TenantBounds } from "./meter.ts";
import { Tenants, type TenantsFigures } from "./tenants.ts";

/** The settings that say who may call, and as whom. */
export type CallerSettings = Pick<
  Settings,
  "apiKey" | "apiKeysFile" | "tenantBy" | "tenantHeader" | "tenantItemsPerSecond" | "tenantItemsInFlight"
>;

/** Whether a server tells its callers apart, so that their items take turns within bounds. */
export const hasTenants = (settings: CallerSettings): boolean =>
  settings.apiKeysFile !== undefined || settings.tenantBy !== "key" || Object.keys(boundsOf(settings)).length > 0;

export const needsKey = ({ apiKey, apiKeysFile }: Partial<Pick<Settings, "apiKey" | "apiKeysFile">>): boolean =>
  apiKey !== undefined || apiKeysFile !== undefined;

export interface CallersLog {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** The tenant of requests that name none. */
const noName = "(none)";
/** Longest name in a header or a field `user`, since names are kept while the tenant is busy. */
const longestName = 256;
/** Polls, which also works for network files and replaced links. */
const lookEveryMs = 1000;

export class Callers {
  readonly #tenants: Tenants = new Tenants();
  readonly #settings: CallerSettings;
  readonly #keys: ApiKeys | undefined;
  readonly #areBounded: boolean;
  readonly #bounds: TenantBounds;
  readonly #hasTenants: boolean;
  readonly #listeners = new Set<() => void>();
  #close: (() => void) | undefined;

  /**
   * With `areBounded: false` another process holds callers to their bounds.
   * @throws {ConfigError} if the file of keys is wrong. If it becomes wrong later, the old keys stay.
   */
  constructor(
    settings: CallerSettings,
    log: CallersLog,
    { areBounded = true }: { readonly areBounded?: boolean } = {},
  ) {
    this.#settings = settings;
    this.#areBounded = areBounded;
    this.#bounds = areBounded ? boundsOf(settings) : {};
    this.#hasTenants = hasTenants(settings);
    this.#keys = needsKey(settings) ? new ApiKeys(settings.apiKey) : undefined;
    if (settings.apiKeysFile !== undefined) this.#followFile(settings.apiKeysFile, this.#keys!, log);
  }

  /** The tenants' figures; undefined if callers are not told apart. */
  get figures(): TenantsFigures | undefined {
    return this.#hasTenants ? this.#tenants.figures() : undefined;
  }

  /** Whether callers need not be identified. */
  get isOpenToAll(): boolean {
    return this.#keys === undefined && !this.#hasTenants;
  }

  /**
   * Identifies the sender by its headers (lower-case names); undefined if callers are not told apart. `place` says where keys are
   * sent.
   * @throws {Problem} 401 without a valid key, 422 for a header that cannot be the name of a tenant.
   */
  identify(header: (name: string) => unknown, place = "in the header"): Caller | undefined {
    const key =
      this.#keys === undefined ? undefined : keyIn(this.#keys, header("authorization"), header("x-api-key"), place);
    if (!this.#hasTenants) return undefined;
    const { tenantBy, tenantHeader } = this.#settings;
    return this.#callerOf(key, tenantBy === "header" ? nameIn(header(tenantHeader), tenantHeader) : undefined);
  }

  /**
   * The caller of an earlier request, by the names that `identify` found: for work that goes on after it.
   * @throws {Problem} 401 where the key of that name is gone
   */
  recall(keyName: string | null, tenant: string | null): Caller | undefined {
    const sent = keyName === null ? undefined : this.#keys?.named(keyName);
    if (keyName !== null && sent === undefined) throw keyIsGone();
    if (!this.#hasTenants || tenant === null) return undefined;
    const isOfKey = this.#settings.tenantBy === "key" && sent !== undefined;
    const bounds = isOfKey ? { ...this.#bounds, ...sent.key.terms.bounds } : this.#bounds;
    return new Caller(this.#tenants, this.#tenants.of(tenant, sent?.key.terms.share ?? 1, bounds), sent);
  }

  /** Calls `listener` whenever keys were replaced or removed. */
  onKeys(listener: () => void): void {
    this.#listeners.add(listener);
  }

  close(): void {
    this.#close?.();
  }

  #callerOf(sent: SentKey | undefined, name: string | undefined): Caller {
    const tenants = this.#tenants;
    const key = sent?.key;
    const share = key?.terms.share ?? 1;
    if (this.#settings.tenantBy === "key" && key !== undefined) {
      const bounds = { ...this.#bounds, ...key.terms.bounds };
      return new Caller(tenants, tenants.of(key.terms.name, share, bounds), sent);
    }
    const prefix = key === undefined || this.#settings.apiKeysFile === undefined ? "" : prefixOf(key.terms.name);
    const ofUser = (user: unknown): Caller => this.#callerOf(sent, nameIn(user ?? undefined, "user"));
    const tenant = tenants.of(`${prefix}${name ?? noName}`, share, this.#bounds);
    return new Caller(tenants, tenant, sent, this.#settings.tenantBy === "user" ? ofUser : undefined);
  }

  #followFile(path: string, keys: ApiKeys, log: CallersLog): void {
    const read = (): readonly KeyTerms[] =>
      readKeysFile(path).map((terms) => (this.#areBounded ? terms : { ...terms, bounds: {} }));
    keys.replace(read());
    const reread = (): void => {
      try {
        const terms = read();
        keys.replace(terms);
        for (const listener of this.#listeners) listener();
        log.info({ keys: terms.length }, "API keys reloaded");
      } catch (error) {
        log.error({}, `API keys unchanged: ${messageOf(error)}`);
      }
    };
    watchFile(path, { interval: lookEveryMs, persistent: false }, reread);
    this.#close = () => unwatchFile(path, reread);
  }
}

/**
 * Separates users of the same name under different keys. Names may contain slashes, so the key's are escaped: the first slash ends
 * it. A server's only key is left out.
 */
const prefixOf = (key: string): string => `${key.replaceAll("%", "%25").replaceAll("/", "%2F")}/`;

const boundsOf = ({
  tenantItemsPerSecond: itemsPerSecond,
  tenantItemsInFlight: itemsInFlight,
}: CallerSettings): TenantBounds => ({
  ...(itemsPerSecond !== undefined && { itemsPerSecond }),
  ...(itemsInFlight !== undefined && { itemsInFlight }),
});

/** `apiKey`: where Anthropic's clients send theirs. @throws {Problem} 401 */
function keyIn(keys: ApiKeys, authorization: unknown, apiKey: unknown, place: string): SentKey {
  const bearer = typeof authorization === "string" ? /^Bearer +(\S.*)$/is.exec(authorization)?.[1] : undefined;
  const given = bearer ?? (typeof apiKey === "string" && authorization === undefined ? apiKey : undefined);
  const key = given === undefined ? undefined : keys.find(given);
  if (key !== undefined) return key;
  throw new Problem(
    "UNAUTHORIZED",
    given === undefined ? `Send the key ${place} authorization: Bearer KEY.` : "The key is wrong.",
    { headers: { "www-authenticate": 'Bearer realm="sheaf"' } },
  );
}

/** The tenant's name in a request; undefined if it gives none. */
function nameIn(given: unknown, path: string): string | undefined {
  if (given === undefined || given === "") return undefined;
  if (typeof given === "string" && given.length <= longestName && /^[^\p{Cc}\p{Cs}]+$/u.test(given)) return given;
  throw invalid(path, `a text of at most ${longestName} characters without control characters`, given);
}
