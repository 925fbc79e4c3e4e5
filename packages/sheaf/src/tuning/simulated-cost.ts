import { check, oneOf } from "../shared/checks.ts";
import { describe } from "../shared/describe.ts";
import { notNegative, positive, share, spanMs } from "./traffic/checks.ts";
import type { Random } from "./traffic/random.ts";
import type { BatchWeights } from "./traffic/weights.ts";

/**
 * What a batch takes in a simulation, in milliseconds: a straight line, measured sizes (between two of them it is
 * interpolated, beyond the last the last slope goes on unless it falls), or a function of the size, the moment, with
 * `weights` the weights, and the runs in flight, itself included. `perWeightMs` counts the items' weights as a sum, or with `batchWeight: "padded"` the heaviest times
 * their number.
 */
export type SimulatedCost =
  | {
      readonly fixedMs: number;
      readonly perItemMs: number;
      /** @default 0 */
      readonly perWeightMs?: number | undefined;
      /** @default "sum" */
      readonly batchWeight?: "sum" | "padded" | undefined;
    }
  | { readonly table: readonly (readonly [size: number, runMs: number])[] }
  | ((size: number, nowMs: number, weights: BatchWeights, inFlight: number) => number);

/** Multiplies every run time. */
export interface RunTimeNoise {
  /**
   * Coefficient of variation of a lognormal factor of mean 1.
   * @default 0
   */
  readonly cv?: number | undefined;
  /**
   * Share of the runs, 0 … 1, that take `outlierFactor` times as long.
   * @default 0
   * @see outlierFactor
   */
  readonly outlierRate?: number | undefined;
  /**
   * How many times as long an outlier takes.
   * @default 10
   * @see outlierRate
   */
  readonly outlierFactor?: number | undefined;
}

/** @throws {RangeError} now, or in a call where a function gives no run time. */
export function runTimesOf(
  cost: SimulatedCost,
): (size: number, nowMs: number, weights: BatchWeights, inFlight: number) => number {
  if (typeof cost === "function") {
    return (size, nowMs, weights, inFlight) =>
      spanMs(`the cost of ${size} items at ${nowMs} ms`, cost(size, nowMs, weights, inFlight));
  }
  const isObject = typeof cost === "object" && cost !== null;
  check(isObject, "cost", "{ fixedMs, perItemMs }, { table } or a function", cost, TypeError);
  if ("table" in cost) return interpolated(cost.table);
  const { fixedMs, perItemMs, perWeightMs = 0, batchWeight = "sum" } = cost;
  if (!(fixedMs >= 0 && perItemMs >= 0 && Number.isFinite(fixedMs + perItemMs))) {
    throw new RangeError(
      `fixedMs and perItemMs must be numbers >= 0, got ${describe(fixedMs)} and ${describe(perItemMs)}`,
    );
  }
  notNegative("perWeightMs", perWeightMs);
  oneOf("sum", "padded")("batchWeight of cost", batchWeight);
  return (size, _, { sum, heaviest }) =>
    fixedMs + perItemMs * size + perWeightMs * (batchWeight === "padded" ? heaviest * size : sum);
}

export function noiseOf(noise: RunTimeNoise, random: Random): () => number {
  const cv = notNegative("noise.cv", noise.cv ?? 0);
  const outlierRate = share("noise.outlierRate", noise.outlierRate ?? 0);
  const outlierFactor = positive("noise.outlierFactor", noise.outlierFactor ?? 10);
  const variance = Math.log1p(cv * cv);
  const deviation = Math.sqrt(variance);
  return () => {
    const factor = cv > 0 ? Math.exp(deviation * random.normal() - variance / 2) : 1;
    return outlierRate > 0 && random.uniform() < outlierRate ? factor * outlierFactor : factor;
  };
}

function interpolated(table: readonly (readonly [number, number])[]): (size: number) => number {
  const given: unknown = table;
  const isTable = Array.isArray(given) && given.length > 0 && given.every((point) => Array.isArray(point));
  if (!isTable)
    throw new RangeError(`table must hold at least one [size, runMs] and nothing else, got ${describe(table)}`);
  const points = table.toSorted((a, b) => a[0] - b[0]);
  for (const [size, runMs] of points) {
    positive("a size of the table", size);
    spanMs(`the run time of size ${size} in the table`, runMs);
  }
  const [first, ...rest] = [points[0]!, ...points.slice(1)] as const;
  return (size) => {
    let low = first;
    let high = first;
    for (const point of rest) {
      low = high;
      high = point;
      if (point[0] >= size) break;
    }
    if (size <= low[0] || low[0] === high[0]) return low[1];
    const slope = (high[1] - low[1]) / (high[0] - low[0]);
    return (
      low[1] + (size > high[0] ? high[1] - low[1] + Math.max(0, slope) * (size - high[0]) : slope * (size - low[0]))
    );
  };
}
