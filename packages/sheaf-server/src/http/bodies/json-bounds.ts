import { Problem } from "../../problems/problem.ts";
import { costs } from "../../shared/costs.ts";

/**
 * Whether a body may exceed the bounds. Most bodies have few arrays, objects and keys, which a native search shows in a hundredth of
 * the time that parsing takes. `false` means that no bound is exceeded, provided that the body is JSON.
 */
export function mayExceed(bytes: Buffer): boolean {
  const most = Math.min(costs.jsonDepth, costs.jsonArrays);
  if (bytes.length > 2 * most) {
    const arrays = countUpTo(most + 1, openBracket, bytes);
    if (arrays > most || arrays + countUpTo(most + 1, openBrace, bytes) > most) return true;
  }
  if (bytes.length < shortestKey * costs.jsonKeys) return false;
  const keys = Math.min(fewKeys, costs.jsonKeys);
  return countUpTo(keys + 1, colon, bytes) > keys;
}

/** Bytes of `"":0,`. */
const shortestKey = 5;
/** Finding more of them costs more than scanning the body. */
const fewKeys = 500;

function countUpTo(most: number, byte: number, bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(byte); at >= 0 && count < most; at = bytes.indexOf(byte, at + 1)) count++;
  return count;
}

/**
 * Counts arrays, objects and keys, which make JSON expensive to parse, in its bytes: JSON.parse takes 0.7 s and most of a
 * gigabyte for 10 MB of `[`, and as long for 900,000 keys. One counter may scan several texts, which then share the bounds.
 */
export class JsonBounds {
  #counts: Counts = { keys: 0, arrays: 0 };

  /** `path` is the place of the text in the request. Checks nothing else: JSON.parse finds mistakes. @throws {Problem} 422. */
  check(bytes: Buffer, path: string): void {
    this.#counts = countsWith(this.#counts, bytes, path);
  }
}

interface Counts {
  readonly keys: number;
  readonly arrays: number;
}

/**
 * Adds the counts of `bytes`. The function ends with its loop on purpose: V8 compiles a long loop before the code after it has ever
 * run, and would discard that compilation after each of the first scans.
 */
function countsWith(before: Counts, bytes: Buffer, path: string): Counts {
  const { jsonKeys, jsonArrays, jsonDepth } = costs;
  const { length } = bytes;
  const shift = bytes.byteOffset & 3;
  const words = new Int32Array(bytes.buffer, bytes.byteOffset - shift, (length + shift) >> 2);
  let { keys, arrays } = before;
  let depth = 0;
  for (let at = 0; at < length; at++) {
    const byte = bytes[at]!;
    if (byte === quote) at = endOfString(bytes, at + 1);
    else if (byte === dot) at = afterNumbers(words, at + shift) - shift - 1;
    // In JSON, a colon outside of texts follows a key.
    else if (byte === colon) {
      if (++keys > jsonKeys) throw tooMany(path, `${jsonKeys} keys`);
    } else if (byte === openBracket || byte === openBrace) {
      if (++depth > jsonDepth) throw problem(path, `must be nested at most ${jsonDepth} deep.`);
      if (++arrays > jsonArrays) throw tooMany(path, `${jsonArrays} arrays and objects`);
    } else if (byte === closeBracket || byte === closeBrace) depth--;
  }
  return { keys, arrays };
}

/**
 * The offset after the numbers that begin at byte `from`, or after that byte. It reads four bytes at once, so scanning an array of
 * floats takes a twentieth of the time of parsing it.
 */
function afterNumbers(words: Int32Array, from: number): number {
  let word = from >> 2;
  if (word >= words.length || hasOthers(words[word]! >>> (8 * (from & 3)))) return from + 1;
  do word++;
  while (word < words.length && !hasOthers(words[word]!));
  return word * 4;
}

/** Whether four bytes have a letter, bracket, brace or quote among them. */
function hasOthers(four: number): boolean {
  // All but quotes have this bit; a byte is 0 where it was a quote.
  const quotes = four ^ 0x22222222;
  return (four & 0x40404040) !== 0 || ((quotes - 0x01010101) & ~quotes & 0x80808080) !== 0;
}

export const colon = 0x3a;
export const quote = 0x22;
const [backslash, space] = [0x5c, 0x20];
const [openBracket, closeBracket, openBrace, closeBrace] = [0x5b, 0x5d, 0x7b, 0x7d];
const dot = 0x2e;

export const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= 0x30 && byte <= 0x39;

/** Bytes over which a loop costs as much as a native search. */
const nearBytes = 48;

/** The closing quote of a string whose text begins at `from`; the end of the bytes where there is none. */
export function endOfString(bytes: Buffer, from: number): number {
  const near = Math.min(bytes.length, from + nearBytes);
  let at = from;
  for (; at < near; at++) {
    const byte = bytes[at]!;
    if (byte === quote) return at;
    if (byte === backslash) at++;
  }
  for (;;) {
    const end = bytes.indexOf(quote, at);
    if (end < 0) return bytes.length;
    let escape = end;
    while (escape > at && bytes[escape - 1] === backslash) escape--;
    if ((end - escape) % 2 === 0) return end;
    at = end + 1;
  }
}

/** The next byte from `at` on that is not space; past the end there is none. */
export function afterSpace(bytes: Buffer, at: number): number {
  let next = at;
  while (next < bytes.length && bytes[next]! <= space) next++;
  return next;
}

const tooMany = (path: string, limit: string): Problem => problem(path, `must have at most ${limit}.`);

function problem(path: string, message: string): Problem {
  const where = path === "" ? "The body" : path;
  return new Problem("INVALID_INPUT", `${where} ${message}`, { param: path || undefined });
}
