/** What batches cost, as measured: a straight line through the run times, and the run times themselves. */
export interface CostModel {
  /** s(0): what a batch costs however few items it holds, in milliseconds. */
  readonly fixedMs: number;
  /** What one more item costs, in milliseconds. */
  readonly perItemMs: number;
  /** Share of the variance that the line explains, 0…1. */
  readonly r2?: number | undefined;
  /** Costs are staircases as often as lines: where a size was measured and differs from the line, the table counts. */
  readonly table?: readonly MeasuredPoint[] | undefined;
}

/** A cost with everything that was measured. */
export interface MeasuredCost extends CostModel {
  readonly r2: number;
  readonly table: readonly MeasuredPoint[];
}

/** A size, its run time, and how far off that may be as a share of it (default 0). */
export type MeasuredPoint = readonly [size: number, runMs: number, errorRate?: number];

/**
 * The line s(n) = fixedMs + perItemMs · n that is closest *relative* to each point: run times spread in proportion to
 * their length, and a plain fit would leave the small sizes to chance. Neither part is below 0.
 */
export function fitLine(points: readonly MeasuredPoint[]): {
  fixedMs: number;
  perItemMs: number;
  r2: number;
} {
  let weights = 0;
  let sizes = 0;
  let times = 0;
  let squares = 0;
  let products = 0;
  for (const [size, runMs] of points) {
    const weight = 1 / Math.max(runMs, Number.EPSILON) ** 2;
    weights += weight;
    sizes += weight * size;
    times += weight * runMs;
    squares += weight * size * size;
    products += weight * size * runMs;
  }
  const spread = weights * squares - sizes * sizes;
  let perItemMs = spread > 0 ? (weights * products - sizes * times) / spread : 0;
  let fixedMs = (times - perItemMs * sizes) / weights;
  if (perItemMs < 0) [fixedMs, perItemMs] = [times / weights, 0];
  else if (fixedMs < 0) [fixedMs, perItemMs] = [0, products / squares];

  const mean = times / weights;
  let residual = 0;
  let total = 0;
  for (const [size, runMs] of points) {
    const weight = 1 / Math.max(runMs, Number.EPSILON) ** 2;
    residual += weight * (runMs - fixedMs - perItemMs * size) ** 2;
    total += weight * (runMs - mean) ** 2;
  }
  return { fixedMs, perItemMs, r2: total > 0 ? Math.max(0, 1 - residual / total) : 0 };
}
