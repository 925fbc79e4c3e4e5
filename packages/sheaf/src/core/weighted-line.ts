/** A size at which a run time is known, and how much it counts. */
export interface LinePoint {
  readonly size: number;
  readonly runMs: number;
  readonly weight: number;
}

/** The straight line with the least weighted squares through some points; level where all have one size. */
export class WeightedLine {
  readonly #points: readonly LinePoint[];
  readonly #weights: number = 0;
  readonly #meanSize: number = 0;
  readonly #spread: number = 0;

  constructor(points: readonly LinePoint[]) {
    this.#points = points;
    for (const { size, weight } of points) {
      this.#weights += weight;
      this.#meanSize += (weight / this.#weights) * (size - this.#meanSize);
    }
    for (const { size, weight } of points) this.#spread += weight * (size - this.#meanSize) ** 2;
    if (this.#spread < 1e-9 * this.#weights) this.#spread = 0;
  }

  /** Whether the points have more than one size. */
  get hasSlope(): boolean {
    return this.#spread > 0;
  }

  /** The line at `size` is a weighted sum of the points' run times: the weight of each. */
  shares(size: number): number[] {
    return this.#points.map(({ size: own, weight }) => {
      const tilt = this.hasSlope ? ((size - this.#meanSize) * (own - this.#meanSize)) / this.#spread : 0;
      return weight * (1 / this.#weights + tilt);
    });
  }

  at(size: number): number {
    return weightedSum(this.shares(size), this.#points);
  }
}

export const weightedSum = (shares: readonly number[], points: readonly { readonly runMs: number }[]): number =>
  points.reduce((sum, { runMs }, k) => sum + shares[k]! * runMs, 0);
