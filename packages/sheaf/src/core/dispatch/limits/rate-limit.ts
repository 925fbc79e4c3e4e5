import type { Amounts, RateLimit, RateLimitFigures, RateLimitSeat, RateLimitStats } from "../../contract/rate-limit.ts";
import { Pauses } from "./pauses.ts";
import { Window } from "./window.ts";

/** What a limit may count. */
export const kinds = ["runs", "items", "weight"] as const;
export type Kind = (typeof kinds)[number];

/**
 * The given limits on dispatch (runs, items, weight, each in any period of its perMs), and the pause that an error with
 * `retryAfterMs` asks for. Items wait and batches fill before a slot is taken, never inside one.
 */
export class RateLimiter implements RateLimitSeat {
  readonly maxWeight: number;
  readonly pauses: Pauses = new Pauses();
  /** Counted so far. */
  readonly used: Record<Kind, number> = { runs: 0, items: 0, weight: 0 };
  /** This process's part of the limits, > 0 and <= 1. */
  share = 1;
  readonly #windows: { readonly kind: Kind; readonly window: Window; readonly perMs: number }[] = [];

  constructor(limits: readonly RateLimit[]) {
    this.maxWeight = Math.min(...limits.map(({ weight = Infinity }) => weight));
    for (const limit of limits) {
      for (const kind of kinds) {
        const { [kind]: most, perMs } = limit;
        if (most !== undefined) this.#windows.push({ kind, window: new Window(most, perMs), perMs });
      }
    }
  }

  room(nowMs: number): { readonly items: number; readonly weight: number } {
    const room = { runs: Infinity, items: Infinity, weight: Infinity };
    for (const { kind, window } of this.#windows)
      if (kind !== "runs") room[kind] = Math.min(room[kind], window.room(nowMs, this.share));
    room.items = Math.max(1, Math.floor(room.items));
    return room;
  }

  readyAtMs(nowMs: number, items: number, weight: number): number {
    return this.amountsReadyAtMs(nowMs, { runs: 1, items, weight });
  }

  amountsReadyAtMs(nowMs: number, amounts: Amounts): number {
    let readyAtMs = this.pauses.untilMs;
    for (const { kind, window } of this.#windows)
      readyAtMs = Math.max(readyAtMs, window.readyAtMs(nowMs, amounts[kind], this.share));
    return readyAtMs;
  }

  spend(nowMs: number, items: number, weight: number): void {
    this.#take(nowMs, { runs: 1, items, weight });
  }

  correct(nowMs: number, weight: number): void {
    this.#take(nowMs, { runs: 0, items: 0, weight });
  }

  pause(nowMs: number, durationMs: number): void {
    const { untilMs } = this.pauses;
    this.pauses.pause(nowMs, durationMs);
    if (this.pauses.untilMs > untilMs) this.refused(nowMs);
  }

  /** The service asked for a pause although the limits were kept: they get a margin. */
  refused(nowMs: number): void {
    for (const { window } of this.#windows) window.refused(nowMs);
  }

  get pausedUntilMs(): number {
    return this.pauses.untilMs;
  }

  pausedMsSince(atMs: number): number {
    return this.pauses.since(atMs);
  }

  leave(): void {}

  /** Of the tightest limit of each kind. */
  figures(kind: Kind, nowMs: number): RateLimitFigures {
    const figures = { perMinute: null, left: null, holds: null, used: this.used[kind] };
    return this.#windows.reduce<RateLimitFigures>((tightest, { kind: counted, window, perMs }) => {
      if (counted !== kind) return tightest;
      return tighter(tightest, {
        perMinute: (window.limit * 60_000) / perMs,
        left: window.left(nowMs, this.share),
        holds: window.limit,
      });
    }, figures);
  }

  stats(nowMs: number): RateLimitStats {
    return {
      runs: this.figures("runs", nowMs),
      items: this.figures("items", nowMs),
      weight: this.figures("weight", nowMs),
      share: this.share,
      refused: 0,
      pausedMs: this.pauses.spentMs(nowMs),
    };
  }

  #take(nowMs: number, amounts: Amounts): void {
    for (const kind of kinds) this.used[kind] += amounts[kind];
    for (const { kind, window } of this.#windows) if (amounts[kind] !== 0) window.add(nowMs, amounts[kind]);
  }
}

/** The lesser of what two limits of one kind allow. */
export function tighter(figures: RateLimitFigures, other: Omit<RateLimitFigures, "used">): RateLimitFigures {
  const less = (a: number | null, b: number | null): number | null =>
    a === null ? b : b === null ? a : Math.min(a, b);
  return {
    perMinute: less(figures.perMinute, other.perMinute),
    left: less(figures.left, other.left),
    holds: less(figures.holds, other.holds),
    used: figures.used,
  };
}
