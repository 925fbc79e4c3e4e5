/** A size at which a run time is known, and how much it counts. */
export interface LinePoint {
  readonly size: number;
  readonly runMs: number;
  readonly weight: number;
}

/** The weighted means of some points. */
export interface Moments {
  readonly weights: number;
  readonly meanSize: number;
  readonly meanMs: number;
  readonly variance: number;
  readonly covariance: number;
}

/** The straight line with the least weighted squares through some points; level where all have one size. */
export interface WeightedLine {
  /** Whether the points have more than one size. */
  readonly hasSlope: boolean;
  readonly meanMs: number;
  /** The line at `size` is a weighted sum of the points' run times: the weight of each. */
  shares(size: number): number[];
  at(size: number): number;
}

/** Loops, because a batcher needs them every few batches: with a function for each point they take several times as long. */
export function momentsOf(points: readonly LinePoint[]): Moments {
  let weights = 0;
  let meanSize = 0;
  let meanMs = 0;
  for (const { size, runMs, weight } of points) {
    weights += weight;
    meanSize += weight * size;
    meanMs += weight * runMs;
  }
  meanSize /= weights;
  meanMs /= weights;
  let variance = 0;
  let covariance = 0;
  for (const { size, runMs, weight } of points) {
    variance += weight * (size - meanSize) ** 2;
    covariance += weight * (size - meanSize) * (runMs - meanMs);
  }
  return { weights, meanSize, meanMs, variance: variance / weights, covariance: covariance / weights };
}

export function lineThrough(points: readonly LinePoint[]): WeightedLine {
  const { weights, meanSize, meanMs, variance, covariance } = momentsOf(points);
  const hasSlope = variance > 1e-9;
  const tilt = hasSlope ? 1 / variance : 0;
  return {
    hasSlope,
    meanMs,
    shares: (at) =>
      points.map(({ size, weight }) => (weight / weights) * (1 + tilt * (at - meanSize) * (size - meanSize))),
    at: (size) => meanMs + tilt * covariance * (size - meanSize),
  };
}

export const weightedSum = (shares: readonly number[], points: readonly { readonly runMs: number }[]): number =>
  sum(points, (point, k) => shares[k]! * point.runMs);

export const sum = <T>(values: readonly T[], of: (value: T, index: number) => number): number =>
  values.reduce((total, value, index) => total + of(value, index), 0);

/**
 * Gauss–Jordan elimination, in place: of rows that hold a square matrix and columns of right-hand sides, the columns become the
 * solutions. False where a pivot is not larger than `leastPivot`.
 */
export function eliminate(rows: readonly number[][], leastPivot: number): boolean {
  for (let i = 0; i < rows.length; i++) {
    const own = rows[i]!;
    const pivot = own[i]!;
    if (!(Math.abs(pivot) > leastPivot)) return false;
    for (let k = i; k < own.length; k++) own[k]! /= pivot;
    for (let j = 0; j < rows.length; j++) {
      const other = rows[j]!;
      const factor = other[i]!;
      if (j !== i) for (let k = i; k < own.length; k++) other[k]! -= factor * own[k]!;
    }
  }
  return true;
}
