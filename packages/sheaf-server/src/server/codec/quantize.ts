import type { VectorRanges } from "../../runners/contract/model-spec.ts";
import { ofLengthOne } from "../../runners/text/vector-modules.ts";

/** Types of small integers for vectors, as Cohere, Jina, Voyage and Mistral name them. */
export const quantizedTypes = ["int8", "uint8", "binary", "ubinary"] as const;
export type QuantizedType = (typeof quantizedTypes)[number];

export const isQuantized = (type: string | undefined): type is QuantizedType =>
  quantizedTypes.includes(type as QuantizedType);

/** Whether a type needs the range of each dimension, which comes from a sample of texts; the others use only the sign. */
export const needsRanges = (type: QuantizedType): boolean => type === "int8" || type === "uint8";

/**
 * Quantizes a vector, scaled to length 1, as `quantize_embeddings` of sentence-transformers 6.2 does. `int8` and `uint8` map the
 * range of each dimension to 256 equal steps and clamp numbers outside it. `binary` and `ubinary` keep one bit per number, 1 if it is
 * above 0, highest bit first. The signed types are the unsigned ones minus 128.
 */
export function quantized(
  vector: Float32Array,
  type: QuantizedType,
  ranges: VectorRanges | undefined,
): Int8Array | Uint8Array {
  const bytes = needsRanges(type) ? stepsOf(ofLengthOne(vector), ranges!) : signsOf(vector);
  return type === "int8" || type === "binary" ? Int8Array.from(bytes, (byte) => byte - 128) : bytes;
}

/** In float32 arithmetic, like NumPy: other rounding would give other steps. */
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
