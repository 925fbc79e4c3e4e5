const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

/** The smallest normal half, 2^-14, and the step of those below it, 2^-24. */
const smallestNormal = 2 ** -14;
const smallestStep = 2 ** -24;

/** The bits of the half-precision float (IEEE 754 binary16) nearest to a number; ties go to the even one. */
export function halfOf(value: number): number {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (Number.isNaN(size)) return 0x7e00;
  if (size >= 65_520) return sign | 0x7c00;
  if (size < smallestNormal) return sign | roundedToEven(size / smallestStep);
  float[0] = size;
  // Not of the float32 beside it, which may be rounded already: a double is exact to 2^-42 of a half.
  const exponent = float[0] > size && (bits[0]! & 0x7f_ffff) === 0 ? (bits[0]! >>> 23) - 128 : (bits[0]! >>> 23) - 127;
  // A mantissa that rounds up to 2048 carries into the exponent, as it should.
  return sign | (((exponent + 14) << 10) + roundedToEven(size * 2 ** (10 - exponent)));
}

/** The number of a half's bits, exactly. */
export function numberOfHalf(half: number): number {
  const sign = (half & 0x8000) === 0 ? 1 : -1;
  const exponent = (half >> 10) & 0x1f;
  const mantissa = half & 0x3ff;
  if (exponent === 0) return sign * mantissa * smallestStep;
  if (exponent === 0x1f) return mantissa === 0 ? sign * Infinity : Number.NaN;
  return sign * (1024 + mantissa) * 2 ** (exponent - 25);
}

let numbersOfHalves: Float32Array | undefined;

/** The numbers of many halves' bits, each looked up in a table of all. */
export function floatsOfHalves(halves: Uint16Array): Float32Array {
  numbersOfHalves ??= Float32Array.from({ length: 65_536 }, (_, half) => numberOfHalf(half));
  const floats = new Float32Array(halves.length);
  for (let i = 0; i < floats.length; i++) floats[i] = numbersOfHalves[halves[i]!]!;
  return floats;
}

export const isFiniteHalf = (half: number): boolean => (half & 0x7c00) !== 0x7c00;

function roundedToEven(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  if (rest !== 0.5) return rest > 0.5 ? below + 1 : below;
  return below % 2 === 0 ? below : below + 1;
}
