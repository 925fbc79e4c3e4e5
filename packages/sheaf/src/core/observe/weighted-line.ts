/** A size at which a run time is known, and how much it counts. */
export interface LinePoint {
  readonly size: number;
  readonly runMs: number;
  readonly weight: number;
}

/** The straight line with the least weighted squares through some points; level where all have one size. */
export interface WeightedLine {
  /** Whether the points have more than one size. */
  readonly hasSlope: boolean;
  /** The line at `size` is a weighted sum of the points' run times: the weight of each. */
  shares(size: number): number[];
  at(size: number): number;
}

export function lineThrough(points: readonly LinePoint[]): WeightedLine {
  const weights = sum(points, (point) => point.weight);
  const meanSize = sum(points, (point) => point.weight * point.size) / weights;
  const spread = sum(points, (point) => point.weight * (point.size - meanSize) ** 2);
  const hasSlope = spread > 1e-9 * weights;
  const shares = (size: number): number[] =>
    points.map((point) => {
      const tilt = hasSlope ? ((size - meanSize) * (point.size - meanSize)) / spread : 0;
      return point.weight * (1 / weights + tilt);
    });
  return { hasSlope, shares, at: (size) => weightedSum(shares(size), points) };
}

export const weightedSum = (shares: readonly number[], points: readonly { readonly runMs: number }[]): number =>
  sum(points, (point, k) => shares[k]! * point.runMs);

export const sum = <T>(values: readonly T[], of: (value: T, index: number) => number): number =>
  values.reduce((total, value, index) => total + of(value, index), 0);
