import { Problem } from "../../problems/problem.ts";

/** Most levels of arrays and objects. More would overflow the stack of code that copies or writes the value. */
export const deepest = 500;

/** The settings that bound a JSON body beside its bytes. */
export interface JsonLimits {
  readonly maxJsonKeys: number;
  readonly maxJsonArrays: number;
}

/**
 * Counts what makes JSON expensive to parse, in its bytes: JSON.parse takes 0.7 s and most of a gigabyte for 10 MB of `[`,
 * and as long for 900,000 keys. One counter may scan several texts, which then share the limits.
 */
export class JsonBounds {
  readonly #limits: JsonLimits;
  #keys = 0;
  #arrays = 0;
  /** A number was long enough, in digits or exponent, that a double may not hold it. */
  hasLongNumber = false;

  constructor(limits: JsonLimits) {
    this.#limits = limits;
  }

  /** `path` is the place of the text in the request. Checks nothing else: JSON.parse finds mistakes. @throws {Problem} 422. */
  check(bytes: Buffer, path: string): void {
    const { maxJsonKeys, maxJsonArrays } = this.#limits;
    const { length } = bytes;
    // Four bytes at once: a body of numbers is scanned in a fiftieth of the time that parsing it takes.
    const shift = bytes.byteOffset & 3;
    const words = new Int32Array(bytes.buffer, bytes.byteOffset - shift, (length + shift) >> 2);
    let depth = 0;
    for (let at = 0; at < length; at++) {
      if (((at + shift) & 3) === 0) {
        at = this.#afterNumbers(words, (at + shift) >> 2, bytes, shift);
        if (at >= length) return;
      }
      const byte = bytes[at]!;
      if (byte === quote) {
        at = endOfString(bytes, at + 1);
        const next = afterSpace(bytes, at + 1);
        if (bytes[next] === colon && ++this.#keys > maxJsonKeys)
          throw tooMany(path, `${maxJsonKeys} keys (MAX_JSON_KEYS)`);
        at = next - 1;
      } else if (byte === openBracket || byte === openBrace) {
        if (++depth > deepest) throw problem(path, `must be nested at most ${deepest} deep.`);
        if (++this.#arrays > maxJsonArrays)
          throw tooMany(path, `${maxJsonArrays} arrays and objects (MAX_JSON_ARRAYS)`);
      } else if (byte === closeBracket || byte === closeBrace) depth--;
      else if ((byte === smallE || byte === largeE) && hasLongExponent(bytes, at)) this.hasLongNumber = true;
    }
  }

  /** The place of the first word from `from` on that has more in it than numbers, commas, colons and space. */
  #afterNumbers(words: Int32Array, from: number, bytes: Buffer, shift: number): number {
    let word = from;
    let digits = 0;
    for (; word < words.length; word++) {
      const four = words[word]!;
      // All letters, brackets and braces have this bit; a byte is 0 where it was a quote.
      const quotes = four ^ 0x22222222;
      if ((four & 0x40404040) !== 0 || ((quotes - 0x01010101) & ~quotes & 0x80808080) !== 0) break;
      // 16 digits fill three words wherever they begin, and shorter integers are exact.
      digits = (four & 0xf0f0f0f0) === 0x30303030 ? digits + 1 : 0;
      if (digits === 3 && !isFraction(bytes, (word - 2) * 4 - shift)) this.hasLongNumber = true;
    }
    return Math.max(from, word) * 4 - shift;
  }
}

export const colon = 0x3a;
const [quote, backslash, space] = [0x22, 0x5c, 0x20];
const [openBracket, closeBracket, openBrace, closeBrace] = [0x5b, 0x5d, 0x7b, 0x7d];
const [smallE, largeE, dot, plus] = [0x65, 0x45, 0x2e, 0x2b];

export const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= 0x30 && byte <= 0x39;

/** Native search costs as much as a loop over so many bytes. */
const nearBytes = 24;

/** The closing quote of a string whose text begins at `from`; the end of the bytes where there is none. */
export function endOfString(bytes: Buffer, from: number): number {
  const near = Math.min(bytes.length, from + nearBytes);
  let at = from;
  while (at < near && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  if (at < near) return at;
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
  while (bytes[next]! <= space) next++;
  return next;
}

/** Whether the digits at `at` stand behind a decimal point. */
function isFraction(bytes: Buffer, at: number): boolean {
  let start = at;
  while (isDigit(bytes[start - 1])) start--;
  return bytes[start - 1] === dot;
}

/** Whether an exponent of three digits or more begins at `at`. Negative ones only make numbers small. */
function hasLongExponent(bytes: Buffer, at: number): boolean {
  const start = at + (bytes[at + 1] === plus ? 2 : 1);
  return isDigit(bytes[start]) && isDigit(bytes[start + 1]) && isDigit(bytes[start + 2]);
}

const tooMany = (path: string, limit: string): Problem => problem(path, `must have at most ${limit}.`);

function problem(path: string, message: string): Problem {
  const where = path === "" ? "The body" : path;
  return new Problem("INVALID_INPUT", `${where} ${message}`, { param: path || undefined });
}
