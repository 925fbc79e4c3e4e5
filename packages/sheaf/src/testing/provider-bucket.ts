/** How a provider counts: a bucket that is refilled evenly and holds `burstMs` of its limit, or fixed minutes. */
export type ProviderShape = "minute" | "10s" | "fixed-minutes";

const minuteMs = 60_000;
const burstMsOf = { minute: minuteMs, "10s": 10_000, "fixed-minutes": minuteMs } as const;

/** One limit of a provider, such as tokens a minute. It starts full. */
export class ProviderBucket {
  #limit: number;
  readonly #shape: ProviderShape;
  #level: number;
  #filledAtMs: number;

  constructor(limit: number, shape: ProviderShape, nowMs: number) {
    this.#limit = limit;
    this.#shape = shape;
    this.#filledAtMs = nowMs;
    this.#level = this.#holds;
  }

  get limit(): number {
    return this.#limit;
  }

  /** A changed limit counts from now on; the rest of a larger one is lost. */
  setLimit(limit: number, nowMs: number): void {
    this.#refill(nowMs);
    this.#limit = limit;
    this.#level = Math.min(this.#level, this.#holds);
  }

  left(nowMs: number): number {
    this.#refill(nowMs);
    return this.#level;
  }

  spend(amount: number): void {
    this.#level -= amount;
  }

  /** Milliseconds until `amount` fits; Infinity where the bucket never holds so much. */
  waitMs(amount: number, nowMs: number): number {
    if (amount > this.#holds) return Infinity;
    const missing = amount - this.left(nowMs);
    if (missing <= 0) return 0;
    return this.#shape === "fixed-minutes" ? this.#windowEndsAtMs - nowMs : (missing * minuteMs) / this.#limit;
  }

  /** Milliseconds until it is full again. */
  resetMs(nowMs: number): number {
    return this.#shape === "fixed-minutes" ? this.#windowEndsAtMs - nowMs : this.waitMs(this.#holds, nowMs);
  }

  get #holds(): number {
    return (this.#limit * burstMsOf[this.#shape]) / minuteMs;
  }

  get #windowEndsAtMs(): number {
    return (Math.floor(this.#filledAtMs / minuteMs) + 1) * minuteMs;
  }

  #refill(nowMs: number): void {
    if (this.#shape === "fixed-minutes") {
      if (nowMs >= this.#windowEndsAtMs) this.#level = this.#holds;
    } else {
      const flowedIn = ((nowMs - this.#filledAtMs) * this.#limit) / minuteMs;
      this.#level = Math.min(this.#holds, this.#level + flowedIn);
    }
    this.#filledAtMs = nowMs;
  }
}
