import { readFileSync } from "node:fs";
import type { Priority } from "sheaf";
import { priorities } from "sheaf/internal/http";
import { describe, nearestOf } from "sheaf/internal";
import { ConfigError } from "../settings/config.ts";
import type { TenantBounds } from "./meter.ts";

/** The tenant of API_KEY. */
export const ownKeyName = "API_KEY";

export interface KeyTerms {
  /** Also its tenant's name. */
  readonly name: string;
  /** SHA-256 of the key, or of both keys while one replaces the other. */
  readonly digests: readonly Buffer[];
  readonly share: number;
  readonly highestLane: Priority;
  /** Whether it opens metrics, the page, and loading and unloading models. */
  readonly isOperator: boolean;
  /** Routes of language models that it opens in a proxy, besides embeddings. */
  readonly opens: readonly string[];
  readonly bounds: TenantBounds;
}

export interface KeyEntry {
  readonly name: string;
  readonly sha256: string | readonly string[];
  readonly share?: number;
  readonly highestLane?: Priority;
  readonly operator?: boolean;
  readonly opens?: readonly string[];
  readonly itemsPerSecond?: number;
  readonly weightPerSecond?: number;
  readonly itemsInFlight?: number;
}

const fields = [
  "name", "sha256", "share", "highestLane", "operator", "opens", "itemsPerSecond", "weightPerSecond", "itemsInFlight",
] as const satisfies readonly (keyof KeyEntry)[]; // prettier-ignore

/** The routes of language models that a proxy paces. */
export const pacedPaths: readonly string[] = ["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"]; // prettier-ignore

const maxKeys = 100_000;
const digestExpected = "the SHA-256 of the key in 64 hex digits, or an array of them";

/** Reads `{ "keys": [ … ] }`. @throws {ConfigError} naming the entry, the expected value, and the one it got. */
export function readKeysFile(path: string): readonly KeyTerms[] {
  return keysOf(jsonIn(path), `API_KEYS_FILE ${path}`);
}

function jsonIn(path: string): unknown {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new ConfigError(`API_KEYS_FILE cannot be read: ${(error as Error).message}.`, { cause: error });
  }
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch {
    // The error of JSON.parse quotes the text, which may hold a key by mistake.
    throw new ConfigError(`API_KEYS_FILE ${path} is not JSON.`);
  }
}

function keysOf(content: unknown, file: string): readonly KeyTerms[] {
  const { keys, ...others } = objectOf(content, file, 'an object { "keys": [ … ] }');
  refuseUnknown(Object.keys(others), ["keys"], file);
  if (!Array.isArray(keys)) throw wrong(`keys in ${file}`, "an array of keys", keys);
  if (keys.length > maxKeys) throw new ConfigError(`keys in ${file} must be at most ${maxKeys}, got ${keys.length}.`);
  const names = new Set<string>();
  const digests = new Set<string>();
  return keys.map((entry: unknown, index) => {
    const terms = termsOf(entry, `keys[${index}]`, file);
    if (names.has(terms.name)) throw new ConfigError(`Two keys in ${file} are named ${JSON.stringify(terms.name)}.`);
    names.add(terms.name);
    for (const digest of terms.digests.map((bytes) => bytes.toString("hex"))) {
      if (digests.has(digest)) throw new ConfigError(`keys[${index}].sha256 in ${file} is that of another key.`);
      digests.add(digest);
    }
    return terms;
  });
}

function termsOf(entry: unknown, path: string, file: string): KeyTerms {
  const where = (name: string): string => `${path}.${name} in ${file}`;
  const given = objectOf(entry, `${path} in ${file}`, "an object with name and sha256");
  refuseUnknown(Object.keys(given), fields, `${path} in ${file}`);
  const { name, sha256, share = 1, highestLane = "interactive", operator = false, opens = [], ...bounds } = given;
  if (!isName(name)) throw wrong(where("name"), "a text of 1 to 64 characters without control characters", name);
  if (name === ownKeyName) throw new ConfigError(`${where("name")} must not be ${ownKeyName}, which is the setting's.`);
  const digests = Array.isArray(sha256) ? (sha256 as unknown[]) : [sha256];
  // The value is not shown, because it may be the key itself.
  if (digests.length === 0 || !digests.every((digest) => typeof digest === "string" && /^[0-9a-f]{64}$/i.test(digest)))
    throw new ConfigError(`${where("sha256")} must be ${digestExpected}; sheaf key prints it.`);
  if (!isAboveZero(share)) throw wrong(where("share"), "a number > 0", share);
  if (!priorities.includes(highestLane as Priority))
    throw wrong(where("highestLane"), `one of ${priorities.join(", ")}`, highestLane);
  if (typeof operator !== "boolean") throw wrong(where("operator"), "true or false", operator);
  if (!Array.isArray(opens) || !opens.every((path) => pacedPaths.includes(path as string)))
    throw wrong(where("opens"), `an array of ${pacedPaths.join(", ")}`, opens);
  for (const [bound, value] of Object.entries(bounds)) {
    const isCount = bound === "itemsInFlight";
    if (!isAboveZero(value) || (isCount && !Number.isInteger(value)))
      throw wrong(where(bound), isCount ? "an integer >= 1" : "a number > 0", value);
  }
  return {
    name,
    digests: digests.map((digest) => Buffer.from(digest as string, "hex")),
    share,
    highestLane: highestLane as Priority,
    isOperator: operator,
    opens: opens as string[],
    bounds,
  };
}

/** Whether a text can be a key's name, which is also a metric label. */
export const isName = (name: unknown): name is string =>
  typeof name === "string" && /^[^\p{Cc}\p{Cs}]{1,64}$/u.test(name) && name.trim() !== "";

const isAboveZero = (value: unknown): value is number =>
  typeof value === "number" && value > 0 && Number.isFinite(value);

function objectOf(value: unknown, where: string, expected: string): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw wrong(where, expected, value);
}

function refuseUnknown(given: readonly string[], known: readonly string[], where: string): void {
  const unknown = given.find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new ConfigError(`${unknown.slice(0, 100)} of ${where} is not known; ${nearestOf(unknown, known)}`);
}

const wrong = (where: string, expected: string, got: unknown): ConfigError =>
  new ConfigError(`${where} must be ${expected}, got ${describe(got)}.`);
