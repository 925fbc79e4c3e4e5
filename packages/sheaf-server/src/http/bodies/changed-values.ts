import { describe } from "sheaf/internal";
import { Problem } from "../../problems/problem.ts";
import { withoutStack } from "../../problems/without-stack.ts";
import { afterSpace, colon, endOfString, isDigit } from "./json-bounds.ts";

/**
 * Finds values of valid JSON that JavaScript would change: integers beyond a double's precision, numbers that become Infinity, and
 * texts with a lone surrogate, which UTF-8 cannot encode. Returns the first fault of each element of a top-level list (`inputs[3]`
 * for the value `inputs[3].id`). `json` is the parsed value; `root` is its path.
 * @throws {Problem} the first fault, if one is outside such elements or more than `mostElements` have one.
 */
export function changedValues(
  bytes: Buffer,
  json: unknown,
  root: string,
  mostElements = 0,
): ReadonlyMap<string, Problem> {
  return mayBeChanged(json) ? new Walk(bytes, root, mostElements).changed : none;
}

const none: ReadonlyMap<string, Problem> = new Map();

/** Whether JSON.parse may have changed a value. Some such values, like 1e300, are unchanged. */
function mayBeChanged(value: unknown): boolean {
  if (typeof value === "number") return value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER;
  if (typeof value === "string") return !value.isWellFormed();
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const element: unknown = value[i];
      // Inlined, because most long arrays hold numbers.
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
  readonly changed: Map<string, Problem> = new Map();
  readonly #bytes: Buffer;
  readonly #root: string;
  readonly #mostElements: number;
  readonly #places: Place[] = [];
  /** Whether the current element has a fault already, so that its other values are skipped. */
  #isKnown = false;

  constructor(bytes: Buffer, root: string, mostElements: number) {
    this.#bytes = bytes;
    this.#root = root;
    this.#mostElements = mostElements;
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
        if (places.length <= 2) this.#isKnown = false;
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
    if (this.#isKnown) return end;
    const isKey = this.#bytes[afterSpace(this.#bytes, end + 1)] === colon;
    const literal = this.#bytes.toString("utf8", at, end + 1);
    if (isKey || halfOfPair.test(literal)) {
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
    if (this.#isKnown || (!hasExponent && end - at < longestExact)) return end - 1;
    const literal = this.#bytes.toString("latin1", at, end);
    const number = Number(literal);
    const got = literal.length > longestShown ? `${literal.slice(0, longestShown)}…` : literal;
    if (!Number.isFinite(number)) this.#add(`must be a finite number, got ${got}.`);
    // Floats from 2^53 on are written as integers by JavaScript and Python; parsing does not change those.
    else if (/^-?\d{16,}$/.test(literal) && String(number) !== literal)
      this.#add(`must be an integer that a 64-bit float holds (up to 2^53), got ${got}; send it as a text.`);
    return end - 1;
  }

  #add(message: string): void {
    if (this.#isKnown) return;
    const [field, index] = this.#places;
    const element = typeof field === "string" && typeof index === "number" ? `${field}[${index}]` : undefined;
    const path = this.#places.reduce<string>(joined, this.#root).slice(0, longestPath);
    const where = path === "" ? "The body" : path;
    const problem = withoutStack(
      () => new Problem("INVALID_INPUT", `${where} ${message}`, { param: path || undefined }),
    );
    if (element === undefined || this.changed.size >= this.#mostElements)
      throw this.changed.values().next().value ?? problem;
    // If a field comes twice, the first fault counts.
    if (!this.changed.has(element)) this.changed.set(element, problem);
    this.#isKnown = true;
  }
}

/** What a text must be. */
export const wholeUnicode = "Unicode text without half of a surrogate pair";

const longestKey = 100;
const longestPath = 300;
const longestShown = 40;

const joined = (path: string, place: Place): string =>
  typeof place === "number" ? `${path}[${place}]` : path === "" ? place : `${path}.${place}`;

/** An escape that may stand for half of a surrogate pair. */
const halfOfPair = /\\u[dD][89a-fA-F]/;

/** A digit, or one of `+-.eE`. */
const isInNumber = (byte = 0): boolean =>
  isDigit(byte) || byte === 0x2b || byte === 0x2d || byte === 0x2e || byte === smallE || byte === largeE;

const [smallE, largeE] = [0x65, 0x45];
/** Integers of fewer digits are exact. */
const longestExact = 16;
