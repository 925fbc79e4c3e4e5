/**
 * Converts Float32 arrays to and from JSON bytes directly: `JSON.stringify` writes 17 digits where 9 suffice, and `JSON.parse` builds
 * an array of doubles first. Writing 768 numbers takes 16 µs instead of 70.
 */

/** Maximum bytes of an array of `length` values: two brackets, and `-0.00000123456789,` for each value. */
export const maxFloat32JsonBytes = ({ length }: Float32Array): number => 2 + 18 * length;

/**
 * Writes a JSON array of the values into `target` from `offset` on, where `maxFloat32JsonBytes` must be free. The text is exact:
 * parsed and rounded to float32, each value is restored. NaN and ±Infinity become null.
 * @returns the offset after the last byte written
 */
export function writeFloat32Json(values: Float32Array, target: Uint8Array, offset: number): number {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  // Four digits per write, at any alignment.
  const words = new DataView(target.buffer, target.byteOffset, target.byteLength);
  let at = offset;
  target[at++] = Ascii.openBracket;
  for (let i = 0; i < values.length; i++) {
    if (i > 0) target[at++] = Ascii.comma;
    at = writeNumber(values, bits, i, target, words, at);
  }
  target[at++] = Ascii.closeBracket;
  return at;
}

/** Where an array of numbers ended, or why it is not one. */
export type Float32Parse =
  | { readonly ok: true; /** After the closing bracket. */ readonly end: number; readonly count: number }
  | {
      readonly ok: false;
      /** `not-finite`: a number beyond the range of float32, such as 1e999. `too-long`: more numbers than `target`. */
      readonly reason: "malformed" | "not-finite" | "too-long";
      readonly index: number;
      /** Offset of its first byte. */
      readonly offset: number;
      /** The text at that place, at most 24 characters. */
      readonly got: string;
    };

/**
 * Reads a flat JSON array of numbers that starts at `offset` into `target`, each rounded as `Math.fround(JSON.parse(text))` would.
 * Strict JSON, so NaN, Infinity, `.5`, `1.` and a trailing comma are malformed.
 */
export function parseFloat32Json(bytes: Buffer, offset: number, target: Float32Array): Float32Parse {
  let at = offset;
  if (bytes[at] !== Ascii.openBracket) return failure(bytes, "malformed", 0, at);
  at = skipSpace(bytes, at + 1);
  if (bytes[at] === Ascii.closeBracket) return { ok: true, end: at + 1, count: 0 };
  const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const lastWord = bytes.length - 4;
  for (let count = 0; ; count++) {
    const start = at;
    // 1 or 0 without a branch: signs are random, and a misprediction costs as much as four digits.
    const minus = (((bytes[at] as number) ^ Ascii.minus) - 1) >>> 31;
    at += minus;

    // Up to nine digits, as an integer that the engine keeps in a register, which halves the time. Unrolled, because the engine would
    // inline only the first of many calls of a helper.
    let digit = (bytes[at] as number) ^ Ascii.zero;
    if (digit > 9) return failure(bytes, "malformed", count, start);
    let head = digit;
    digit = (bytes[++at] as number) ^ Ascii.zero;
    // No digit follows a leading zero.
    if (head > 0) {
      while (digit <= 9 && head < nineDigits) {
        head = (head * 10 + digit) | 0;
        digit = (bytes[++at] as number) ^ Ascii.zero;
      }
    }
    let pointAt = -1;
    let decimals = 0;
    if (digit === Digit.point) {
      pointAt = at;
      digit = (bytes[++at] as number) ^ Ascii.zero;
      if (digit > 9) return failure(bytes, "malformed", count, start);
      // Four digits at once, up to nine in all: most numbers have eight after the point.
      while (head < fiveDigits && at <= lastWord) {
        const four = words.getInt32(at, true) ^ 0x30303030;
        // A byte above 9 has its highest bit set, at the latest once 0x76 is added.
        if ((((four + 0x76767676) | 0 | four) & 0x80808080) !== 0) break;
        const pairs = (Math.imul(four, 10) + (four >>> 8)) | 0;
        head = (Math.imul(head, 10_000) + Math.imul(pairs & 0xff, 100) + ((pairs >>> 16) & 0xff)) | 0;
        at += 4;
      }
      digit = (bytes[at] as number) ^ Ascii.zero;
      while (digit <= 9 && head < nineDigits) {
        head = (head * 10 + digit) | 0;
        digit = (bytes[++at] as number) ^ Ascii.zero;
      }
      decimals = at - pointAt - 1;
    }

    const hasMore = (digit <= 9 && head > 0) || digit === Digit.e || digit === Digit.E || decimals > 22;
    let value: number;
    if (!hasMore) {
      // Both are exact doubles, so one division rounds once and correctly (Clinger 1990).
      value = head / powerOfTen(decimals);
    } else {
      // Converted although it is a number: the engine does not know the type of a call's result and would keep `value` on the heap in
      // both branches, at 16 bytes a number.
      // oxlint-disable-next-line typescript/no-unnecessary-type-conversion
      value = Number(readRest(bytes, start + minus, at, head, pointAt));
      if (Number.isNaN(value)) return failure(bytes, "malformed", count, start);
      at = endOfNumber;
      digit = (bytes[at] as number) ^ Ascii.zero;
    }
    if (count >= target.length) return failure(bytes, "too-long", count, start);
    target[count] = value * (1 - 2 * minus);
    if (hasMore && !Number.isFinite(target[count])) return failure(bytes, "not-finite", count, start);

    if (digit !== Digit.comma) {
      at = skipSpace(bytes, at);
      if (bytes[at] === Ascii.closeBracket) return { ok: true, end: at + 1, count: count + 1 };
      if (bytes[at] !== Ascii.comma) return failure(bytes, "malformed", count, start);
    }
    at += 1;
    if ((bytes[at] as number) <= Ascii.space) at = skipSpace(bytes, at);
  }
}

/** Where the number that `readRest` last read ended: a second result that needs no object. */
let endOfNumber = 0;

/**
 * Reads a number of more than nine digits or with an exponent. It began at `start`, and `firstDigits` holds its digits before
 * `offset`. `pointAt` is the offset of its decimal point, -1 if none has come yet. NaN if it is malformed.
 */
function readRest(bytes: Buffer, start: number, offset: number, firstDigits: number, pointAt: number): number {
  let at = offset;
  let head = firstDigits;
  let point = pointAt;
  // Digits up to the 15th: a double holds head and tail together exactly.
  let tail = 0;
  let tailDigits = 0;
  let droppedDigits = 0;
  let digit = digitAt(bytes, at);
  for (;;) {
    for (; digit <= 9 && head < nineDigits; digit = digitAt(bytes, ++at)) head = (head * 10 + digit) | 0;
    for (; digit <= 9 && tailDigits < 6; digit = digitAt(bytes, ++at)) {
      tail = (tail * 10 + digit) | 0;
      tailDigits += 1;
    }
    for (; digit <= 9; digit = digitAt(bytes, ++at)) droppedDigits += 1;
    if (digit !== Digit.point || point >= 0) break;
    point = at;
    digit = digitAt(bytes, ++at);
    if (digit > 9) return NaN;
  }
  let exponent = droppedDigits - (point < 0 ? 0 : at - point - 1);
  if (digit === Digit.e || digit === Digit.E) {
    digit = digitAt(bytes, ++at);
    const isBelow = digit === Digit.minus;
    if (isBelow || digit === Digit.plus) digit = digitAt(bytes, ++at);
    if (digit > 9) return NaN;
    let written = 0;
    for (; digit <= 9; digit = digitAt(bytes, ++at)) {
      // Capped far outside a double's range, so that an exponent of a thousand digits cannot overflow.
      if (written < 100_000) written = written * 10 + digit;
    }
    exponent += isBelow ? -written : written;
  }
  endOfNumber = at;
  const significand = head * powerOfTen(tailDigits) + tail;
  if (significand === 0) return 0;
  if (exponent < -22 || exponent > 22) return Number(bytes.toString("latin1", start, at));
  const value = exponent < 0 ? significand / powerOfTen(-exponent) : significand * powerOfTen(exponent);
  return droppedDigits > 0 && isNearTie(value) ? Number(bytes.toString("latin1", start, at)) : value;
}

/** From here on an integer has nine digits, and a tenth may not fit in 31 bits. */
const nineDigits = 100_000_000;
/** An integer below this and four more digits make nine digits at most. */
const fiveDigits = 100_000;

const Ascii = {
  space: 32,
  zero: 48,
  comma: 44,
  minus: 45,
  dot: 46,
  openBracket: 91,
  closeBracket: 93,
} as const;

/** Characters as `digitAt` gives them. */
const Digit = { plus: 27, comma: 28, minus: 29, point: 30, e: 85, E: 117 } as const;

/** The value of a digit; above 9 for any other character and after the end. */
const digitAt = (bytes: Buffer, at: number): number => (bytes[at] as number) ^ Ascii.zero;

const powersOfTen: Float64Array = Float64Array.from({ length: 23 }, (_, i) => Number(`1e${i}`));

function powerOfTen(exponent: number): number {
  return powersOfTen[exponent] as number;
}

// floor(log10) of the smallest number of each binary exponent, and the power of ten above it.
const decimalExponents = Int8Array.from({ length: 256 }, (_, biased) => Math.floor(Math.log10(2 ** (biased - 127))));
const nextPowersOfTen = Float64Array.from(decimalExponents, (exponent) => 10 ** (exponent + 1));

// "0000" … "9999" as four characters, little-endian.
const fourDigits: Uint32Array = Uint32Array.from({ length: 10_000 }, (_, i) =>
  Buffer.from(String(i).padStart(4, "0"), "latin1").readUInt32LE(),
);

/** Writes nine significant digits, which distinguish any two float32, or fewer if six suffice; no trailing zeros. */
function writeNumber(
  values: Float32Array,
  allBits: Uint32Array,
  index: number,
  target: Uint8Array,
  words: DataView,
  offset: number,
): number {
  // Read here: as arguments both would be heap objects, 24 KiB for a row of 768.
  const value = values[index] as number;
  const bits = allBits[index] as number;
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
  // Numbers given with up to six digits come out unchanged: 0.1, not 0.100000001.
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
    at = writeNineDigits(digits, target, words, at);
  } else {
    if (integerDigits === 9) return writeNineDigits(digits, target, words, at);
    const end = writeNineDigits(digits, target, words, at + 1);
    // Not copyWithin: for a few bytes the call costs as much as the whole number.
    for (let i = 0; i < integerDigits; i++) target[at + i] = target[at + i + 1] as number;
    target[at + integerDigits] = Ascii.dot;
    at = end;
  }
  while (target[at - 1] === Ascii.zero) at -= 1;
  return target[at - 1] === Ascii.dot ? at - 1 : at;
}

function writeNineDigits(digits: number, target: Uint8Array, words: DataView, offset: number): number {
  const upper = (digits / 10_000) | 0;
  const first = (upper / 10_000) | 0;
  target[offset] = Ascii.zero + first;
  words.setUint32(offset + 1, fourDigits[upper - first * 10_000] as number, true);
  words.setUint32(offset + 5, fourDigits[digits - upper * 10_000] as number, true);
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
 * Whether a double whose digits beyond the 15th were dropped is so close to the midpoint of two float32 that those digits could
 * decide: float32 drops the double's low 29 bits, and the dropped digits are worth fewer than 16 of its units.
 */
function isNearTie(value: number): boolean {
  tieScratch[0] = value;
  const dropped = (tieWords[lowWord] as number) & 0x1fff_ffff;
  return Math.abs(dropped - 0x1000_0000) < 512;
}

function failure(
  bytes: Buffer,
  reason: "malformed" | "not-finite" | "too-long",
  index: number,
  offset: number,
): Float32Parse {
  return { ok: false, reason, index, offset, got: tokenAt(bytes, offset) };
}

function skipSpace(bytes: Buffer, offset: number): number {
  let at = offset;
  while (bytes[at] === 32 || bytes[at] === 10 || bytes[at] === 13 || bytes[at] === 9) at += 1;
  return at;
}

/** The token for an error message: up to the next comma, bracket or space; a string up to its end. */
function tokenAt(bytes: Buffer, offset: number): string {
  const text = bytes.toString("utf8", offset, offset + 64);
  const token = /^(?:"[^"]*"?|[[{]|[^\s,\]}]+|.)/su.exec(text)?.[0] ?? "the end of the text";
  return token.length > 24 ? `${token.slice(0, 23)}…` : token;
}
