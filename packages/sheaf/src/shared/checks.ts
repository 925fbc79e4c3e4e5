import { describe } from "./describe.ts";

/** Throws, naming the option and its value, unless the value is allowed. */
export type Check = (name: string, value: unknown) => void;

/** The one sentence of a refused value. A RangeError; a TypeError where the kind of value is wrong. */
export function check(
  holds: boolean,
  name: string,
  expected: string,
  value: unknown,
  Kind: ErrorConstructor = RangeError,
): asserts holds {
  if (!holds) throw new Kind(`${name} must be ${expected}, got ${describe(value)}`);
}

/** Checks every given option, and refuses unknown names. `path` is put before the names. */
export function checkOptions(options: unknown, checks: Readonly<Record<string, Check>>, path: string = ""): void {
  check(typeof options === "object" && options !== null, path || "options", "an object", options, TypeError);
  checkNames(options, checks, path);
  for (const name in checks) {
    const value = (options as Record<string, unknown>)[name];
    if (value !== undefined) checks[name]!(path === "" ? name : `${path}.${name}`, value);
  }
}

/** A method with these options: it rejects for a wrong or unknown one. */
export const withOptions =
  <Options extends object, T>(checks: Readonly<Record<string, Check>>, method: (options: Options) => Promise<T>) =>
  (options: Options = {} as Options): Promise<T> => {
    try {
      checkOptions(options, checks);
    } catch (error) {
      return Promise.reject(error);
    }
    return method(options);
  };

/** @throws {TypeError} for a name that is not in `known`, with the nearest one that is. */
export function checkNames(options: object, known: object, path: string = ""): void {
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(known, name)) continue;
    const at = path && `${path}.`;
    throw new TypeError(`unknown option ${at}${name.slice(0, 60)}; ${nearestOf(name, Object.keys(known), at)}`);
  }
}

/** The hint after an unknown name: the one that was probably meant, or a list of all. */
export function nearestOf(name: string, known: readonly string[], at: string = ""): string {
  let nearest = "";
  let fewest = Math.ceil(Math.min(name.length, 18) / 3) + 1;
  for (const candidate of known) {
    const isStart = name !== "" && candidate.startsWith(name);
    const edits = isStart ? 1 : editsBetween(name.slice(0, 60).toLowerCase(), candidate.toLowerCase());
    if (edits < fewest) [nearest, fewest] = [candidate, edits];
  }
  if (nearest !== "") return `did you mean ${at}${nearest}?`;
  return known.length === 1 ? `there is only ${known[0]}` : `there are ${known.join(", ") || "none"}`;
}

/** Levenshtein's distance. */
export function editsBetween(from: string, to: string): number {
  let row = Array.from(to, (_, j) => j + 1);
  for (let i = 0; i < from.length; i++) {
    let left = i + 1;
    let diagonal = i;
    row = row.map((above, j) => {
      left = Math.min(left + 1, above + 1, diagonal + (from[i] === to[j] ? 0 : 1));
      diagonal = above;
      return left;
    });
  }
  return row.at(-1) ?? from.length;
}

export const isInteger = (value: unknown, least: number, most: number = Infinity): boolean =>
  Number.isInteger(value) && (value as number) >= least && (value as number) <= most;

export const integerFrom =
  (least: number): Check =>
  (name, value) =>
    check(isInteger(value, least), name, `an integer >= ${least}`, value);

export const checkCount: Check = integerFrom(1);

export function checkCountOrInfinity(name: string, value: unknown, alternative: string = ""): void {
  check(value === Infinity || isInteger(value, 1), name, `an integer >= 1${alternative}`, value);
}

export const numberThat =
  (expected: string, holds: (value: number) => boolean): Check =>
  (name, value) =>
    check(typeof value === "number" && holds(value), name, `a number ${expected}`, value);

export const checkPositive: Check = numberThat("> 0", (value) => value > 0);

/** A span that ends. */
export const checkSpan: Check = numberThat("of milliseconds > 0", (value) => value > 0 && value < Infinity);

export const checkShare: Check = numberThat("> 0 and <= 1", (value) => value > 0 && value <= 1);

export const checkNotNegative: Check = numberThat(">= 0", (value) => value >= 0);

/** The options of every `close`. */
export interface Closing {
  readonly graceMs?: number | undefined;
}

export const closeChecks: Readonly<Record<keyof Closing, Check>> = { graceMs: checkNotNegative };

export function checkFunction(name: string, value: unknown): void {
  check(typeof value === "function", name, "a function", value, TypeError);
}

export function checkText(name: string, value: unknown): asserts value is string {
  check(typeof value === "string" && value !== "", name, "a non-empty string", value, TypeError);
}

/** An object with these methods. */
export const withMethods =
  (expected: string, ...methods: readonly string[]): Check =>
  (name, value) =>
    check(hasMethods(value, ...methods), name, expected, value, TypeError);

export const hasMethods = (value: unknown, ...methods: readonly string[]): boolean =>
  methods.every((method) => typeof (value as Record<string, unknown> | undefined | null)?.[method] === "function");

export function oneOf(...allowed: readonly unknown[]): Check {
  const list = allowed.map(describe).join(" or ");
  return (name, value) => check(allowed.includes(value), name, list, value);
}
