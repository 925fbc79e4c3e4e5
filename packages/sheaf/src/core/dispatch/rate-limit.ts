import type { RateLimit } from "../contract/options.ts";

/**
 * A token bucket on dispatch (runs, items, weight, each refilled evenly to its limit over perMs), and the pause that an
 * error with `retryAfterMs` asks for. Items wait and batches fill before a slot is taken, never inside one.
 */
export class RateLimiter {
  /** A batch larger than the bucket could never go. */
  readonly maxItems: number;
  readonly maxWeight: number;
  #pausedUntilMs = -Infinity;
  readonly #buckets: { readonly kind: "runs" | "items" | "weight"; readonly limit: number; tokens: number }[] = [];
  readonly #perMs: number;
  #filledAtMs = -Infinity;

  constructor(limit: RateLimit | undefined) {
    this.#perMs = limit?.perMs ?? 1;
    this.maxItems = limit?.items ?? Infinity;
    this.maxWeight = limit?.weight ?? Infinity;
    for (const kind of ["runs", "items", "weight"] as const) {
      const tokens = limit?.[kind];
      if (tokens !== undefined) this.#buckets.push({ kind, limit: tokens, tokens });
    }
  }

  /** The moment from which a batch of that size may go; in the past when it may go now. */
  readyAtMs(nowMs: number, items: number, weight: number): number {
    let readyAtMs = this.#pausedUntilMs;
    if (this.#buckets.length === 0) return readyAtMs;
    this.#refill(nowMs);
    for (const { kind, limit, tokens } of this.#buckets) {
      const needed = Math.min(limit, { runs: 1, items, weight }[kind]);
      // A millionth of a token is a rounding error, and waiting for it would set a timer of 0 ms.
      if (tokens < needed - 1e-6) readyAtMs = Math.max(readyAtMs, nowMs + ((needed - tokens) * this.#perMs) / limit);
    }
    return readyAtMs;
  }

  /** Counts a run that was started; extra runs of a bisection may leave a debt. */
  spend(nowMs: number, items: number, weight: number): void {
    if (this.#buckets.length === 0) return;
    this.#refill(nowMs);
    for (const bucket of this.#buckets) bucket.tokens -= { runs: 1, items, weight }[bucket.kind];
  }

  /** Pauses dispatch as an error asks: `retryAfterMs`, a finite number of milliseconds > 0. */
  observe(error: unknown, nowMs: number): void {
    const retryAfterMs = (error as { retryAfterMs?: unknown } | null | undefined)?.retryAfterMs;
    if (typeof retryAfterMs !== "number" || !Number.isFinite(retryAfterMs) || retryAfterMs <= 0) return;
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, nowMs + retryAfterMs);
  }

  #refill(nowMs: number): void {
    const elapsedMs = nowMs - this.#filledAtMs;
    if (elapsedMs <= 0) return;
    this.#filledAtMs = nowMs;
    for (const bucket of this.#buckets) {
      bucket.tokens = Math.min(bucket.limit, bucket.tokens + (bucket.limit * elapsedMs) / this.#perMs);
    }
  }
}
