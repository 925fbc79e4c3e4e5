import { lineThrough, sum as sumOf, type LinePoint } from "../core/measure/least-squares.ts";

/** The measured cost of batches: a straight line through the run times, and the run times themselves. */
export interface CostLine {
  /** s(0): the fixed cost of a batch, in milliseconds. */
  readonly fixedMs: number;
  /** The cost of one more item, in milliseconds. */
  readonly perItemMs: number;
  /** Share of the variance that the line explains, 0…1. */
  readonly r2?: number | undefined;
  /** Costs are often staircases, not lines: if a measured size differs from the line, the table counts. */
  readonly table?: readonly MeasuredPoint[] | undefined;
}

/** A cost with everything that was measured. */
export interface MeasuredCost extends CostLine {
  readonly r2: number;
  readonly table: readonly MeasuredPoint[];
}

/** A size, its run time, and the possible error as a share of that (default 0). */
export type MeasuredPoint = readonly [size: number, runMs: number, errorRate?: number];

/**
 * The line s(n) = fixedMs + perItemMs · n that is closest *relative* to each point: run times spread in proportion to
 * their length, and a plain fit would leave the small sizes to chance. Neither part is below 0. `counts`: how much each counts.
 */
export function fitLine(
  points: readonly MeasuredPoint[],
  counts: readonly number[] = [],
): {
  fixedMs: number;
  perItemMs: number;
  r2: number;
} {
  const weighed = points.map(([size, runMs], i) => ({
    size,
    runMs,
    weight: (counts[i] ?? 1) / Math.max(runMs, Number.EPSILON) ** 2,
  }));
  const line = lineThrough(weighed);
  const sum = (of: (point: LinePoint) => number): number => sumOf(weighed, (point) => point.weight * of(point));
  const { meanMs } = line;
  let fixedMs = line.at(0);
  let perItemMs = line.at(1) - fixedMs;
  if (perItemMs < 0) [fixedMs, perItemMs] = [meanMs, 0];
  else if (fixedMs < 0) {
    fixedMs = 0;
    perItemMs = sum(({ size, runMs }) => size * runMs) / sum(({ size }) => size * size);
  }
  const residual = sum(({ size, runMs }) => (runMs - fixedMs - perItemMs * size) ** 2);
  const total = sum(({ runMs }) => (runMs - meanMs) ** 2);
  return { fixedMs, perItemMs, r2: total > 0 ? Math.max(0, 1 - residual / total) : 0 };
}
