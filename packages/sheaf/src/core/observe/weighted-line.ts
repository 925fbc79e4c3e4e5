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
  readonly weights: number;
  readonly meanSize: number;
  readonly meanMs: number;
  readonly variance: number;
  readonly covariance: number;
  /** The line at `size` is a weighted sum of the points' run times: the weight of each. */
  shares(size: number): number[];
  at(size: number): number;
}

export function lineThrough(points: readonly LinePoint[]): WeightedLine {
  const weights = sum(points, ({ weight }) => weight);
  const mean = (of: (point: LinePoint) => number): number => sum(points, (point) => point.weight * of(point)) / weights;
  const meanSize = mean(({ size }) => size);
  const meanMs = mean(({ runMs }) => runMs);
  const variance = mean(({ size }) => (size - meanSize) ** 2);
  const covariance = mean(({ size, runMs }) => (size - meanSize) * (runMs - meanMs));
  const hasSlope = variance > 1e-9;
  const tilt = hasSlope ? 1 / variance : 0;
  return {
    hasSlope,
    weights,
    meanSize,
    meanMs,
    variance,
    covariance,
    shares: (at) =>
      points.map(({ size, weight }) => (weight / weights) * (1 + tilt * (at - meanSize) * (size - meanSize))),
    at: (size) => meanMs + tilt * covariance * (size - meanSize),
  };
}

export const weightedSum = (shares: readonly number[], points: readonly { readonly runMs: number }[]): number =>
  sum(points, (point, k) => shares[k]! * point.runMs);

export const sum = <T>(values: readonly T[], of: (value: T, index: number) => number): number =>
  values.reduce((total, value, index) => total + of(value, index), 0);
