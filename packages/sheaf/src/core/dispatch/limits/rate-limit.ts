import type { RateLimit, RateLimitFigures, RateLimitSeat, RateLimitStats } from "../../contract/rate-limit.ts";
import { Pauses } from "./pauses.ts";

/**
 * A token bucket on dispatch (runs, items, weight, each refilled evenly to its limit over perMs), and the pause that an
 * error with `retryAfterMs` asks for. Items wait and batches fill before a slot is taken, never inside one.
 */
export class RateLimiter implements RateLimitSeat {
  readonly maxItems: number;
  readonly maxWeight: number;
  readonly #pauses = new Pauses();
  readonly #buckets: { readonly kind: "runs" | "items" | "weight"; readonly limit: number; tokens: number }[] = [];
  readonly #perMs: number;
  readonly #used = { runs: 0, items: 0, weight: 0 };
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

  readyAtMs(nowMs: number, items: number, weight: number): number {
    let readyAtMs = this.#pauses.untilMs;
    if (this.#buckets.length === 0) return readyAtMs;
    this.#refill(nowMs);
    for (const { kind, limit, tokens } of this.#buckets) {
      const needed = Math.min(limit, { runs: 1, items, weight }[kind]);
      // A millionth of a token is a rounding error, and waiting for it would set a timer of 0 ms.
      if (tokens < needed - 1e-6) readyAtMs = Math.max(readyAtMs, nowMs + ((needed - tokens) * this.#perMs) / limit);
    }
    return readyAtMs;
  }

  spend(nowMs: number, items: number, weight: number): void {
    this.#take(nowMs, { runs: 1, items, weight });
  }

  correct(nowMs: number, weight: number): void {
    this.#take(nowMs, { runs: 0, items: 0, weight });
  }

  pause(nowMs: number, durationMs: number): void {
    this.#pauses.pause(nowMs, durationMs);
  }

  get pausedUntilMs(): number {
    return this.#pauses.untilMs;
  }

  pausedMsSince(atMs: number): number {
    return this.#pauses.since(atMs);
  }

  leave(): void {}

  stats(nowMs: number): RateLimitStats {
    this.#refill(nowMs);
    const figures = (kind: "runs" | "items" | "weight"): RateLimitFigures => {
      const bucket = this.#buckets.find((each) => each.kind === kind);
      const perMinute = bucket === undefined ? null : (bucket.limit * 60_000) / this.#perMs;
      return { perMinute, left: bucket?.tokens ?? null, holds: bucket?.limit ?? null, used: this.#used[kind] };
    };
    return {
      runs: figures("runs"),
      items: figures("items"),
      weight: figures("weight"),
      share: 1,
      refused: 0,
      pausedMs: this.#pauses.spentMs(nowMs),
    };
  }

  #take(nowMs: number, amounts: { readonly runs: number; readonly items: number; readonly weight: number }): void {
    if (this.#buckets.length === 0) return;
    this.#refill(nowMs);
    for (const kind of ["runs", "items", "weight"] as const) this.#used[kind] += amounts[kind];
    for (const bucket of this.#buckets) bucket.tokens = Math.min(bucket.limit, bucket.tokens - amounts[bucket.kind]);
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
