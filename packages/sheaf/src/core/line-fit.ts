/** Run time as fixedMs + perItemMs · size, with the share of its variance that the line explains. */
export interface CostModel {
  readonly fixedMs: number;
  readonly perItemMs: number;
  readonly r2: number;
}

// Forgets half of what it knows in about 700 batches, so that it follows a model whose cost drifts.
const forgetting = 0.999;

/** Least-squares line through (size, run time), recent batches weighing more. */
export class LineFit {
  #weight = 0;
  #meanX = 0;
  #meanY = 0;
  #varX = 0;
  #varY = 0;
  #covariance = 0;

  observe(size: number, runMs: number): void {
    // Welford's update with exponential weights: sums of squares would lose their digits.
    this.#weight = this.#weight * forgetting + 1;
    const gain = 1 / this.#weight;
    const dx = size - this.#meanX;
    const dy = runMs - this.#meanY;
    this.#meanX += gain * dx;
    this.#meanY += gain * dy;
    this.#varX += gain * (dx * (size - this.#meanX) - this.#varX);
    this.#varY += gain * (dy * (runMs - this.#meanY) - this.#varY);
    this.#covariance += gain * (dx * (runMs - this.#meanY) - this.#covariance);
  }

  /** `null` before batches of two sizes have been seen. A line that would be negative somewhere is cut at 0. */
  model(): CostModel | null {
    if (this.#varX < 1e-9) return null;
    const slope = Math.max(0, this.#covariance / this.#varX);
    const fixedMs = this.#meanY - slope * this.#meanX;
    const r2 = this.#varY > 0 ? Math.min(1, this.#covariance ** 2 / (this.#varX * this.#varY)) : 1;
    if (fixedMs >= 0) return { fixedMs, perItemMs: slope, r2 };
    return { fixedMs: 0, perItemMs: this.#meanY / this.#meanX, r2 };
  }
}
