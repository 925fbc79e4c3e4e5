/**
 * Float32 arrays to and from JSON text, straight from and into bytes: `JSON.stringify` writes 17 digits of numbers that
 * have 9, and `JSON.parse` builds an array of doubles first. bench/float32-json.mjs shows what that is worth.
 */

/** The most bytes one number takes, comma included: `-0.00000123456789,`. */
export const maxFloat32JsonBytes: number = 18;

/** A JSON array of the values, exact: parsed and rounded to float32 each is itself again. NaN and ±Infinity are null. */
export function float32ToJson(values: Float32Array): Buffer {
  const target = Buffer.allocUnsafe(2 + values.length * maxFloat32JsonBytes);
  return target.subarray(0, writeFloat32Json(values, target, 0));
}

/**
 * As `float32ToJson`, into `target` from `offset` on, which must have 2 + 18 bytes a value free there.
 * @returns the offset after the last byte written
 */
export function writeFloat32Json(values: Float32Array, target: Uint8Array, offset: number): number {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  let at = offset;
  target[at++] = Ascii.openBracket;
  for (let i = 0; i < values.length; i++) {
    if (i > 0) target[at++] = Ascii.comma;
    at = writeNumber(values[i] as number, bits[i] as number, target, at);
  }
  target[at++] = Ascii.closeBracket;
  return at;
}

/** Where an array of numbers ended, or why it is none. */
export type Float32Parse =
  | { readonly ok: true; /** After the closing bracket. */ readonly end: number; readonly count: number }
  | {
      readonly ok: false;
      /** `not-finite`: a number that float32 has no room for, such as 1e999. `too-long`: more numbers than `target`. */
      readonly reason: "malformed" | "not-finite" | "too-long";
      /** The element in question. */
      readonly index: number;
      /** Its first byte. */
      readonly offset: number;
      /** What stands there, at most 24 characters. */
      readonly got: string;
    };

/**
 * Reads a flat JSON array of numbers that starts at `offset` into `target`: each as `Math.fround(JSON.parse(text))`.
 * Strict JSON, so NaN, Infinity, `.5`, `1.` and a trailing comma are malformed.
 */
export function parseFloat32Json(bytes: Buffer, offset: number, target: Float32Array): Float32Parse {
  let at = offset;
  const fail = (reason: "malformed" | "not-finite" | "too-long", index: number, start: number): Float32Parse => ({
    ok: false,
    reason,
    index,
    offset: start,
    got: tokenAt(bytes, start),
  });
  if (bytes[at] !== Ascii.openBracket) return fail("malformed", 0, at);
  at = skipSpace(bytes, at + 1);
  if (bytes[at] === Ascii.closeBracket) return { ok: true, end: at + 1, count: 0 };
  for (let count = 0; ; count++) {
    const start = at;
    let byte = bytes[at];
    const isNegative = byte === Ascii.minus;
    if (isNegative) byte = bytes[++at];

    // The first 15 significant digits as an integer, which a double holds exactly, and a power of ten.
    let significand = 0;
    let digits = 0;
    let exponent = 0;
    let isCut = false;
    if (byte === Ascii.zero) {
      byte = bytes[++at];
    } else {
      if (!isDigit(byte)) return fail("malformed", count, start);
      do {
        if (digits < 15) {
          significand = significand * 10 + (byte - Ascii.zero);
          digits += 1;
        } else {
          exponent += 1;
          isCut = true;
        }
        byte = bytes[++at];
      } while (isDigit(byte));
    }
    if (byte === Ascii.dot) {
      byte = bytes[++at];
      if (!isDigit(byte)) return fail("malformed", count, start);
      do {
        if (digits < 15) {
          significand = significand * 10 + (byte - Ascii.zero);
          exponent -= 1;
          if (significand !== 0) digits += 1;
        } else {
          isCut = true;
        }
        byte = bytes[++at];
      } while (isDigit(byte));
    }
    if (byte === Ascii.e || byte === Ascii.E) {
      byte = bytes[++at];
      const isBelow = byte === Ascii.minus;
      if (isBelow || byte === Ascii.plus) byte = bytes[++at];
      if (!isDigit(byte)) return fail("malformed", count, start);
      let written = 0;
      do {
        // Capped far outside of what a double holds, so that a thousand digits of exponent stay a number.
        if (written < 100_000) written = written * 10 + (byte - Ascii.zero);
        byte = bytes[++at];
      } while (isDigit(byte));
      exponent += isBelow ? -written : written;
    }
    if (count >= target.length) return fail("too-long", count, start);

    let value: number;
    if (significand === 0) value = 0;
    else if (exponent >= -22 && exponent <= 22) {
      // Both are exact doubles, so one operation rounds once and correctly (Clinger 1990).
      value = exponent < 0 ? significand / powerOfTen(-exponent) : significand * powerOfTen(exponent);
      if (isCut && isNearTie(value)) value = Math.abs(Number(bytes.toString("latin1", start, at)));
    } else value = Math.abs(Number(bytes.toString("latin1", start, at)));
    target[count] = isNegative ? -value : value;
    if (!Number.isFinite(target[count])) return fail("not-finite", count, start);

    at = skipSpace(bytes, at);
    if (bytes[at] === Ascii.closeBracket) return { ok: true, end: at + 1, count: count + 1 };
    if (bytes[at] !== Ascii.comma) return fail("malformed", count, start);
    at = skipSpace(bytes, at + 1);
  }
}

const Ascii = {
  zero: 48,
  comma: 44,
  minus: 45,
  plus: 43,
  dot: 46,
  openBracket: 91,
  closeBracket: 93,
  E: 69,
  e: 101,
} as const;

const powersOfTen: Float64Array = Float64Array.from({ length: 23 }, (_, i) => Number(`1e${i}`));

function powerOfTen(exponent: number): number {
  return powersOfTen[exponent] as number;
}

// floor(log10) of the smallest number of each binary exponent, and the power of ten above it.
const decimalExponents = Int8Array.from({ length: 256 }, (_, biased) => Math.floor(Math.log10(2 ** (biased - 127))));
const nextPowersOfTen = Float64Array.from(decimalExponents, (exponent) => 10 ** (exponent + 1));

// "0000" … "9999": four digits a look-up.
const fourDigits = Buffer.from(Array.from({ length: 10_000 }, (_, i) => String(i).padStart(4, "0")).join(""), "latin1");

/** Nine significant digits, which tell any two float32 apart; fewer where six are enough, and no trailing zeros. */
function writeNumber(value: number, bits: number, target: Uint8Array, offset: number): number {
  let at = offset;
  if (bits >>> 31 === 1) target[at++] = Ascii.minus;
  const x = Math.abs(value);
  if (x === 0) {
    target[at++] = Ascii.zero;
    return at;
  }
  if (!(x >= 1e-6 && x < 1e9)) return writeText(exponentText(value), target, offset);

  const biased = (bits >>> 23) & 255;
  let exponent = decimalExponents[biased] as number;
  if (x >= (nextPowersOfTen[biased] as number)) exponent += 1;
  const decimals = 8 - exponent;
  const scale = powerOfTen(decimals);
  // Below 2 ** 30, so that the engine may keep it a small integer.
  let digits = (x * scale + 0.5) | 0;
  // Numbers that were written with up to six digits read as they were written: 0.1 and not 0.100000001.
  const tail = digits % 1000;
  if (tail <= 60 || tail >= 940) {
    const shorter = tail <= 60 ? digits - tail : digits - tail + 1000;
    if (Math.fround(shorter / scale) === x) digits = shorter;
  }
  if (digits >= 1e9) {
    digits = 1e8;
    exponent += 1;
  }

  const integerDigits = exponent + 1;
  if (integerDigits <= 0) {
    target[at] = Ascii.zero;
    target[at + 1] = Ascii.dot;
    at += 2;
    for (let zeros = integerDigits; zeros < 0; zeros++) target[at++] = Ascii.zero;
    at = writeNineDigits(digits, target, at);
  } else {
    writeNineDigits(digits, target, at);
    if (integerDigits === 9) return at + 9;
    target.copyWithin(at + integerDigits + 1, at + integerDigits, at + 9);
    target[at + integerDigits] = Ascii.dot;
    at += 10;
  }
  while (target[at - 1] === Ascii.zero) at -= 1;
  return target[at - 1] === Ascii.dot ? at - 1 : at;
}

function writeNineDigits(digits: number, target: Uint8Array, offset: number): number {
  const upper = (digits / 10_000) | 0;
  const first = (upper / 10_000) | 0;
  const middle = (upper - first * 10_000) * 4;
  const last = (digits - upper * 10_000) * 4;
  // Written out: a loop costs a third of the whole number.
  target[offset] = Ascii.zero + first;
  target[offset + 1] = fourDigits[middle] as number;
  target[offset + 2] = fourDigits[middle + 1] as number;
  target[offset + 3] = fourDigits[middle + 2] as number;
  target[offset + 4] = fourDigits[middle + 3] as number;
  target[offset + 5] = fourDigits[last] as number;
  target[offset + 6] = fourDigits[last + 1] as number;
  target[offset + 7] = fourDigits[last + 2] as number;
  target[offset + 8] = fourDigits[last + 3] as number;
  return offset + 9;
}

function exponentText(value: number): string {
  return Number.isFinite(value) ? value.toExponential(8).replace(/\.?0*e/u, "e") : "null";
}

function writeText(text: string, target: Uint8Array, offset: number): number {
  for (let i = 0; i < text.length; i++) target[offset + i] = text.charCodeAt(i);
  return offset + text.length;
}

const tieScratch = new Float64Array(1);
const tieWords = new Uint32Array(tieScratch.buffer);
const lowWord = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1 ? 0 : 1;

/**
 * Whether a double whose digits beyond the 15th were dropped is so close to the middle of two float32 that they could
 * decide: float32 drops the double's low 29 bits, and the dropped digits are worth fewer than 16 of its units.
 */
function isNearTie(value: number): boolean {
  tieScratch[0] = value;
  const dropped = (tieWords[lowWord] as number) & 0x1fff_ffff;
  return Math.abs(dropped - 0x1000_0000) < 512;
}

function isDigit(byte: number | undefined): byte is number {
  return byte !== undefined && byte >= Ascii.zero && byte <= Ascii.zero + 9;
}

function skipSpace(bytes: Buffer, offset: number): number {
  let at = offset;
  while (bytes[at] === 32 || bytes[at] === 10 || bytes[at] === 13 || bytes[at] === 9) at += 1;
  return at;
}

/** What an error message shows: up to the next comma, bracket or space, and a string up to its end. */
function tokenAt(bytes: Buffer, offset: number): string {
  const text = bytes.toString("utf8", offset, offset + 64);
  const token = /^(?:"[^"]*"?|[[{]|[^\s,\]}]+|.)/su.exec(text)?.[0] ?? "the end of the text";
  return token.length > 24 ? `${token.slice(0, 23)}…` : token;
}
