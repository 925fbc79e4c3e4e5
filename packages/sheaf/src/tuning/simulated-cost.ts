import type { Random } from "./random.ts";

/**
 * What a batch takes in a simulation, in milliseconds: a straight line, measured sizes (between two of them it is
 * interpolated, beyond the last the last slope goes on), or a function of the size and the moment.
 */
export type SimulatedCost =
  | { readonly fixedMs: number; readonly perItemMs: number }
  | { readonly table: readonly (readonly [size: number, runMs: number])[] }
  | ((size: number, nowMs: number) => number);

/** Multiplies every run time. */
export interface RunTimeNoise {
  /** Coefficient of variation of a lognormal factor of mean 1. Default 0. */
  readonly cv?: number | undefined;
  /** Share of the runs, 0 … 1, that take `outlierFactor` times as long. Default 0. */
  readonly outlierRate?: number | undefined;
  /** Default 10. */
  readonly outlierFactor?: number | undefined;
}

export function runTimesOf(cost: SimulatedCost): (size: number, nowMs: number) => number {
  if (typeof cost === "function") return cost;
  if ("table" in cost) return interpolated(cost.table);
  const { fixedMs, perItemMs } = cost;
  if (!(fixedMs >= 0 && perItemMs >= 0 && fixedMs + perItemMs < Infinity)) {
    throw new RangeError(`fixedMs and perItemMs must be numbers >= 0, got ${fixedMs} and ${perItemMs}`);
  }
  return (size) => fixedMs + perItemMs * size;
}

export function noiseOf({ cv = 0, outlierRate = 0, outlierFactor = 10 }: RunTimeNoise, random: Random): () => number {
  const variance = Math.log(1 + cv * cv);
  const deviation = Math.sqrt(variance);
  return () => {
    const factor = cv > 0 ? Math.exp(deviation * random.normal() - variance / 2) : 1;
    return outlierRate > 0 && random.uniform() < outlierRate ? factor * outlierFactor : factor;
  };
}

function interpolated(table: readonly (readonly [number, number])[]): (size: number) => number {
  const points = table.toSorted((a, b) => a[0] - b[0]);
  const [first, ...rest] = points;
  if (first === undefined) throw new RangeError("table must hold at least one [size, runMs]");
  return (size) => {
    let low = first;
    let high = first;
    for (const point of rest) {
      low = high;
      high = point;
      if (point[0] >= size) break;
    }
    if (size <= low[0] || low[0] === high[0]) return low[1];
    return low[1] + ((high[1] - low[1]) * (size - low[0])) / (high[0] - low[0]);
  };
}
