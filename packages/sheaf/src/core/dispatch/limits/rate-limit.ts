import type { RateLimit, RateLimitFigures, RateLimitSeat, RateLimitStats } from "../../contract/rate-limit.ts";
import { Pauses } from "./pauses.ts";
import { Window } from "./window.ts";

/**
 * A limit on dispatch (runs, items, weight, each in any period of perMs), and the pause that an error with `retryAfterMs` asks
 * for. Items wait and batches fill before a slot is taken, never inside one.
 */
export class RateLimiter implements RateLimitSeat {
  readonly maxItems: number;
  readonly maxWeight: number;
  readonly #pauses = new Pauses();
  readonly #windows: { readonly kind: "runs" | "items" | "weight"; readonly window: Window }[] = [];
  readonly #perMs: number;
  readonly #used = { runs: 0, items: 0, weight: 0 };

  constructor(limit: RateLimit | undefined) {
    this.#perMs = limit?.perMs ?? 1;
    this.maxItems = limit?.items ?? Infinity;
    this.maxWeight = limit?.weight ?? Infinity;
    for (const kind of ["runs", "items", "weight"] as const) {
      const most = limit?.[kind];
      if (most !== undefined) this.#windows.push({ kind, window: new Window(most, this.#perMs) });
    }
  }

  readyAtMs(nowMs: number, items: number, weight: number): number {
    let readyAtMs = this.#pauses.untilMs;
    for (const { kind, window } of this.#windows)
      readyAtMs = Math.max(readyAtMs, window.readyAtMs(nowMs, { runs: 1, items, weight }[kind]));
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
    const figures = (kind: "runs" | "items" | "weight"): RateLimitFigures => {
      const window = this.#windows.find((each) => each.kind === kind)?.window;
      const perMinute = window === undefined ? null : (window.limit * 60_000) / this.#perMs;
      return { perMinute, left: window?.left(nowMs) ?? null, holds: window?.limit ?? null, used: this.#used[kind] };
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
    if (this.#windows.length === 0) return;
    for (const kind of ["runs", "items", "weight"] as const) this.#used[kind] += amounts[kind];
    for (const { kind, window } of this.#windows) if (amounts[kind] !== 0) window.add(nowMs, amounts[kind]);
  }
}
