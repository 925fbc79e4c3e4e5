import { describe } from "sheaf/internal";
import { Problem } from "../../problems/problem.ts";
import { afterSpace, colon, endOfString, isDigit } from "./json-bounds.ts";

/** A value that would be another one after JSON.parse. */
export interface ChangedValue {
  /** The element of a list that is a field of the whole: `inputs[3]`, where the value is `inputs[3].id`. */
  readonly element: string | undefined;
  readonly problem: Problem;
}

/**
 * The values of valid JSON that JavaScript would change: integers that no double holds, numbers that become Infinity, and
 * texts with half of a surrogate pair, which UTF-8 has no bytes for. The first of all, and the first of each further
 * element of a list that is a field of the whole. `json` is the parsed value, at most `deepest` deep; `root` is its path.
 */
export function changedValues(bytes: Buffer, json: unknown, root: string): readonly ChangedValue[] {
  return mayBeChanged(json) ? new Walk(bytes, root).changed : [];
}

/** Whether a value looks like one that JSON.parse has changed. Some of these are as they were sent, such as 1e300. */
function mayBeChanged(value: unknown): boolean {
  if (typeof value === "number") return value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER;
  if (typeof value === "string") return !value.isWellFormed();
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const element: unknown = value[i];
      // Without a call for each: most long arrays hold numbers.
      if (typeof element === "number" && element <= Number.MAX_SAFE_INTEGER && element >= Number.MIN_SAFE_INTEGER)
        continue;
      if (mayBeChanged(element)) return true;
    }
    return false;
  }
  for (const key in value)
    if (!key.isWellFormed() || mayBeChanged((value as Readonly<Record<string, unknown>>)[key])) return true;
  return false;
}

/** A place in an array or an object that is open: the index or the key of its current value. */
type Place = number | string;

class Walk {
  readonly changed: ChangedValue[] = [];
  readonly #bytes: Buffer;
  readonly #root: string;
  readonly #places: Place[] = [];

  constructor(bytes: Buffer, root: string) {
    this.#bytes = bytes;
    this.#root = root;
    for (let at = 0; at < bytes.length; at++) at = this.#read(at);
  }

  /** Reads the token at `at`. @returns its last byte. */
  #read(at: number): number {
    const places = this.#places;
    switch (String.fromCharCode(this.#bytes[at]!)) {
      case "[":
        places.push(0);
        return at;
      case "{":
        places.push("");
        return at;
      case "]":
      case "}":
        places.pop();
        return at;
      case ",": {
        const place = places.at(-1);
        if (typeof place === "number") places[places.length - 1] = place + 1;
        return at;
      }
      case '"':
        return this.#readText(at);
      case "-":
        return this.#readNumber(at);
      default:
        return isDigit(this.#bytes[at]) ? this.#readNumber(at) : at;
    }
  }

  #readText(at: number): number {
    const end = endOfString(this.#bytes, at + 1);
    const literal = this.#bytes.toString("utf8", at, end + 1);
    const isKey = this.#bytes[afterSpace(this.#bytes, end + 1)] === colon;
    if (literal.includes("\\u") || isKey) {
      const text = JSON.parse(literal) as string;
      if (isKey) this.#places[this.#places.length - 1] = text.toWellFormed().slice(0, longestKey);
      if (!text.isWellFormed()) this.#add(`must be ${wholeUnicode}, got ${describe(text)}.`);
    }
    return end;
  }

  #readNumber(at: number): number {
    let end = at + 1;
    let hasExponent = false;
    for (let byte = this.#bytes[end]; isInNumber(byte); byte = this.#bytes[++end])
      hasExponent ||= byte === smallE || byte === largeE;
    if (!hasExponent && end - at < longestExact) return end - 1;
    const literal = this.#bytes.toString("latin1", at, end);
    const number = Number(literal);
    const got = literal.length > longestShown ? `${literal.slice(0, longestShown)}…` : literal;
    if (!Number.isFinite(number)) this.#add(`must be a finite number, got ${got}.`);
    // A float of JavaScript or Python is an integer too from 2^53 on: its own text stays as it is.
    else if (/^-?\d{16,}$/.test(literal) && String(number) !== literal)
      this.#add(`must be an integer that a 64-bit float holds (up to 2^53), got ${got}; send it as a text.`);
    return end - 1;
  }

  #add(message: string): void {
    const [field, index] = this.#places;
    const element = typeof field === "string" && typeof index === "number" ? `${field}[${index}]` : undefined;
    if (this.changed.length > 0 && (element === undefined || this.changed.at(-1)!.element === element)) return;
    const path = this.#places.reduce<string>(joined, this.#root).slice(0, longestPath);
    const where = path === "" ? "The body" : path;
    const problem = new Problem("INVALID_INPUT", `${where} ${message}`, { param: path || undefined });
    this.changed.push({ element, problem });
  }
}

/** What a text must be. */
export const wholeUnicode = "Unicode text without half of a surrogate pair";

const longestKey = 100;
const longestPath = 300;
const longestShown = 40;

const joined = (path: string, place: Place): string =>
  typeof place === "number" ? `${path}[${place}]` : path === "" ? place : `${path}.${place}`;

/** A digit, or one of `+-.eE`. */
const isInNumber = (byte = 0): boolean =>
  isDigit(byte) || byte === 0x2b || byte === 0x2d || byte === 0x2e || byte === smallE || byte === largeE;

const [smallE, largeE] = [0x65, 0x45];
/** Integers of fewer digits are exact. */
const longestExact = 16;
