/** Means of token vectors, `[rows, tokens, width]` → one vector a row; tokens past a row's length count 0. */
export function meanPool(
  states: Float32Array,
  tokens: number,
  width: number,
  lengths: readonly number[],
): Float32Array[] {
  return lengths.map((length, row) => {
    const sums = new Float64Array(width);
    for (let token = 0; token < length; token++) {
      const start = (row * tokens + token) * width;
      for (let i = 0; i < width; i++) sums[i]! += states[start + i]!;
    }
    return Float32Array.from(sums, (sum) => sum / length);
  });
}

/** The first token's vector of each row. */
export function firstTokens(states: Float32Array, tokens: number, width: number, rows: number): Float32Array[] {
  return Array.from({ length: rows }, (_, row) => states.slice(row * tokens * width, row * tokens * width + width));
}

/** To length 1; a vector of zeros stays as it is. */
export function normalize(vector: Float32Array): Float32Array {
  const length = Math.hypot(...vector);
  return length === 0 ? vector : vector.map((value) => value / length);
}

/** The first `length` numbers, to length 1, as a Matryoshka model is trained for. */
export const shortened = (vector: Float32Array, length: number): Float32Array => normalize(vector.slice(0, length));

export function softmax(logits: Float32Array): Float32Array {
  const largest = logits.reduce((most, value) => Math.max(most, value), -Infinity);
  const powers = Float64Array.from(logits, (value) => Math.exp(value - largest));
  const sum = powers.reduce((total, value) => total + value, 0);
  return Float32Array.from(powers, (value) => value / sum);
}

export const sigmoid = (logit: number): number => 1 / (1 + Math.exp(-logit));
