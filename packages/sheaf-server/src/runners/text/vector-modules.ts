import { readSafetensors } from "./safetensors.ts";

/** The ways of making one vector of token vectors, by their names of sentence-transformers, in the order of joined ones. */
export const poolingModes = {
  cls: { flag: "pooling_mode_cls_token" },
  max: { flag: "pooling_mode_max_tokens" },
  mean: { flag: "pooling_mode_mean_tokens" },
  mean_sqrt_len_tokens: { flag: "pooling_mode_mean_sqrt_len_tokens" },
  weightedmean: { flag: "pooling_mode_weightedmean_tokens" },
  lasttoken: { flag: "pooling_mode_lasttoken" },
} as const;

export type PoolingMode = keyof typeof poolingModes;

/** A module of sentence-transformers after the model itself. */
export type VectorModule =
  | { readonly type: "pooling"; readonly modes: readonly PoolingMode[]; readonly includesPrompt: boolean }
  | { readonly type: "normalize" }
  | {
      readonly type: "dense";
      readonly weights: string;
      readonly from: number;
      readonly to: number;
      readonly hasBias: boolean;
      readonly activation: "Identity" | "Tanh" | "ReLU" | "Sigmoid" | "GELU" | "SiLU";
      readonly isResidual: boolean;
    };

export interface TokenVectors {
  /** `[tokens, width]`, in row order. */
  readonly states: Float32Array;
  readonly width: number;
  /** The first pooled token: a prompt may be excluded. */
  readonly from: number;
  /** One past the last token. */
  readonly to: number;
}

/** Pools token vectors into one; several modes are concatenated. */
export function pool(tokens: TokenVectors, modes: readonly PoolingMode[]): Float32Array {
  const [mode] = modes;
  if (modes.length === 1) return poolings[mode!](tokens);
  const joined = new Float32Array(modes.length * tokens.width);
  modes.forEach((each, i) => joined.set(poolings[each](tokens), i * tokens.width));
  return joined;
}

const poolings: Readonly<Record<PoolingMode, (tokens: TokenVectors) => Float32Array>> = {
  cls: ({ states, width, from }) => states.slice(from * width, (from + 1) * width),
  lasttoken: ({ states, width, to }) => states.slice((to - 1) * width, to * width),
  max: ({ states, width, from, to }) => {
    const most = states.slice(from * width, (from + 1) * width);
    for (let token = from + 1; token < to; token++)
      for (let i = 0; i < width; i++) most[i] = Math.max(most[i]!, states[token * width + i]!);
    return most;
  },
  mean: (tokens) => weighted(tokens, () => 1, tokens.to - tokens.from),
  mean_sqrt_len_tokens: (tokens) => weighted(tokens, () => 1, Math.sqrt(tokens.to - tokens.from)),
  weightedmean: (tokens) => {
    let sum = 0;
    for (let token = tokens.from; token < tokens.to; token++) sum += token + 1;
    return weighted(tokens, (token) => token + 1, sum);
  },
};

function weighted(
  { states, width, from, to }: TokenVectors,
  weightOf: (token: number) => number,
  divisor: number,
): Float32Array {
  const means = new Float32Array(width);
  for (let i = 0; i < width; i++) {
    let sum = 0;
    for (let token = from; token < to; token++) sum += weightOf(token) * states[token * width + i]!;
    means[i] = sum / divisor;
  }
  return means;
}

/** Opens the modules after pooling: one function of a vector. @throws {Error} weights that are missing or of another shape. */
export function openVectorModules(modules: readonly VectorModule[]): (vector: Float32Array) => Float32Array {
  const steps = modules.flatMap((module) => {
    if (module.type === "pooling") return [];
    return module.type === "normalize" ? [normalize] : [openDense(module)];
  });
  return (vector) => steps.reduce((result, step) => step(result), vector);
}

const denseActivations = {
  Identity: (x: number) => x,
  Tanh: Math.tanh,
  ReLU: (x: number) => Math.max(0, x),
  Sigmoid: (x: number) => sigmoid(x),
  GELU: (x: number) => (x / 2) * (1 + erf(x / Math.SQRT2)),
  SiLU: (x: number) => x * sigmoid(x),
};

function openDense(module: VectorModule & { readonly type: "dense" }): (vector: Float32Array) => Float32Array {
  const { weights, from, to, hasBias, activation, isResidual } = module;
  const hasOwnResidual = isResidual && from !== to;
  const tensors = readSafetensors(weights, {
    "linear.weight": from * to,
    ...(hasBias && { "linear.bias": to }),
    ...(hasOwnResidual && { "residual.weight": from * to }),
  });
  const matrix = tensors["linear.weight"]!;
  const bias = tensors["linear.bias"] ?? new Float32Array(to);
  const residual = tensors["residual.weight"];
  const product = (values: Float32Array, vector: Float32Array, row: number): number => {
    let sum = 0;
    for (let i = 0; i < from; i++) sum += values[row * from + i]! * vector[i]!;
    return sum;
  };
  return (vector) => {
    if (vector.length !== from) throw new Error(`${weights} takes ${from} numbers, got ${vector.length}.`);
    return Float32Array.from({ length: to }, (_, row) => {
      const value = denseActivations[activation](product(matrix, vector, row) + bias[row]!);
      if (!isResidual) return value;
      return value + (residual === undefined ? vector[row]! : product(residual, vector, row));
    });
  };
}

/** The error function: its power series near 0, its continued fraction elsewhere; both to about 1e-14. */
function erf(x: number): number {
  const size = Math.abs(x);
  if (size > 6) return Math.sign(x);
  if (size < 2.5) {
    let term = x;
    let sum = x;
    for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
      term *= (-x * x) / n;
      sum += term / (2 * n + 1);
    }
    return (2 / Math.sqrt(Math.PI)) * sum;
  }
  let fraction = 0;
  for (let n = 60; n >= 1; n--) fraction = n / 2 / (size + fraction);
  return Math.sign(x) * (1 - Math.exp(-size * size) / (Math.sqrt(Math.PI) * (size + fraction)));
}

/** Scales to length 1; leaves zeros. */
export function normalize(vector: Float32Array): Float32Array {
  // The square of the largest float32 is far from the largest double.
  let squares = 0;
  for (let i = 0; i < vector.length; i++) squares += vector[i]! ** 2;
  const length = Math.sqrt(squares);
  return length === 0 ? vector : vector.map((value) => value / length);
}

/** The first `length` numbers, to length 1, as a Matryoshka model is trained for. */
/** Leaves vectors that are normalised up to rounding, so that every route returns the same bits. */
export function ofLengthOne(vector: Float32Array): Float32Array {
  let square = 0;
  for (const value of vector) square += value * value;
  return Math.abs(square - 1) < 1e-5 ? vector : normalize(vector);
}

export const shortened = (vector: Float32Array, length: number): Float32Array => normalize(vector.slice(0, length));

export function softmax(logits: Float32Array): Float32Array {
  const largest = logits.reduce((most, value) => Math.max(most, value), -Infinity);
  const powers = Float64Array.from(logits, (value) => Math.exp(value - largest));
  const sum = powers.reduce((total, value) => total + value, 0);
  return Float32Array.from(powers, (value) => value / sum);
}

export const sigmoid = (logit: number): number => 1 / (1 + Math.exp(-logit));
