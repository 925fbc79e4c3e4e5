import { objectOf } from "../codec/inputs.ts";
import { invalid } from "../../problems/problem.ts";

export type Fields = Readonly<Record<string, unknown>>;

/**
 * The fields of a body; null stands for one that is not given. Fields that are not `known` are refused by name, since they
 * might change the results, except `ignored` ones, which change nothing.
 * @throws {Problem} 422
 */
export function fieldsOf(
  body: unknown,
  expected: string,
  known: readonly string[],
  ignored: readonly string[] = [],
): Fields {
  return objectOf(withoutNulls(body), "", expected, [...known, ...ignored]);
}

export function withoutNulls(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  if (!Object.values(value).includes(null)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== null));
}

/** A field that names a model; undefined where it is not given. */
export function modelNameOf({ model }: Fields): string | undefined {
  if (model !== undefined && typeof model !== "string") throw invalid("model", "the name of a model", model);
  return model;
}

export function flagOf(fields: Fields, key: string, standard: boolean): boolean {
  const value = fields[key] ?? standard;
  if (typeof value !== "boolean") throw invalid(key, "true or false", value);
  return value;
}

/** A whole number; undefined where it is not given. */
export function integerOf(fields: Fields, key: string, least: number): number | undefined {
  const value = fields[key];
  if (value === undefined) return undefined;
  if (!Number.isSafeInteger(value) || (value as number) < least) throw invalid(key, `an integer >= ${least}`, value);
  return value as number;
}

/** One of some words; undefined where it is not given. */
export function wordOf<Word extends string>(fields: Fields, key: string, words: readonly Word[]): Word | undefined {
  const value = fields[key];
  if (value === undefined) return undefined;
  if (!words.includes(value as Word)) throw invalid(key, words.map((word) => JSON.stringify(word)).join(" or "), value);
  return value as Word;
}
