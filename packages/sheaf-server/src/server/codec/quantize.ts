import type { VectorRanges } from "../../runners/contract/model-spec.ts";
import { ofLengthOne } from "../../runners/text/vector-modules.ts";

/** The types of small integers that a vector may be given in, by the names of Cohere, Jina, Voyage and Mistral. */
export const quantizedTypes = ["int8", "uint8", "binary", "ubinary"] as const;
export type QuantizedType = (typeof quantizedTypes)[number];

export const isQuantized = (type: string | undefined): type is QuantizedType =>
  quantizedTypes.includes(type as QuantizedType);

/** Whether a type divides the range of each dimension, which a sample of texts has shown; the others take the sign alone. */
export const needsRanges = (type: QuantizedType): boolean => type === "int8" || type === "uint8";

/**
 * A vector in small integers, once it has length 1, as `quantize_embeddings` of sentence-transformers 6.2 makes them. `int8`
 * and `uint8`: which of 256 equal steps between the smallest and the largest number of its dimension, and the nearest
 * where a number is outside. `binary` and `ubinary`: a bit for each number, 1 where it is above 0, the first one highest.
 * The signed types are the unsigned ones less 128.
 */
export function quantized(
  vector: Float32Array,
  type: QuantizedType,
  ranges: VectorRanges | undefined,
): Int8Array | Uint8Array {
  const bytes = needsRanges(type) ? stepsOf(ofLengthOne(vector), ranges!) : signsOf(vector);
  return type === "int8" || type === "binary" ? Int8Array.from(bytes, (byte) => byte - 128) : bytes;
}

/** In the arithmetic of float32, as NumPy has it: another rounding would end on another step. */
function stepsOf(vector: Float32Array, { min, max }: VectorRanges): Uint8Array {
  const { fround } = Math;
  return Uint8Array.from(vector, (value, i) => {
    const start = fround(min[i]!);
    const step = fround(fround(fround(max[i]!) - start) / 255) || 1;
    return Math.min(255, Math.max(0, Math.floor(fround(fround(value - start) / step))));
  });
}

function signsOf(vector: Float32Array): Uint8Array {
  const bytes = new Uint8Array(Math.ceil(vector.length / 8));
  vector.forEach((value, i) => {
    if (value > 0) bytes[i >> 3]! |= 128 >> (i & 7);
  });
  return bytes;
}
