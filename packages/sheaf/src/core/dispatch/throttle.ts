import type { RateLimitSeat } from "../contract/rate-limit.ts";
import { isShared, limitsOf, type Settings } from "../contract/settings.ts";
import type { BatcherStats } from "../contract/stats.ts";
import type { Clock } from "../runtime/runtime.ts";
import { describe, propertyOf } from "../../shared/describe.ts";
import { RateLimiter } from "./rate-limit.ts";

/** What dispatch waits for: the rate limit, and the pauses that runs ask for. */
export class Throttle {
  /** `undefined` without a rate limit, until a run asks for a pause. */
  seat: RateLimitSeat | undefined;
  /** Looks again when a limit that others share lets batches go earlier than it said. */
  scheduler: { look(): void } | undefined;
  readonly #clock: Clock;
  readonly #maxPauseMs: number;
  #why = "";

  constructor({ clock, rateLimit, maxPauseMs }: Pick<Settings<never, never>, "clock" | "rateLimit" | "maxPauseMs">) {
    this.#clock = clock;
    this.#maxPauseMs = maxPauseMs;
    if (isShared(rateLimit)) this.seat = rateLimit.join(() => this.scheduler?.look());
    else if (rateLimit !== undefined) this.seat = new RateLimiter(limitsOf(rateLimit));
  }

  /** The most that a batch may ever weigh. */
  get maxWeight(): number {
    return this.seat?.maxWeight ?? Infinity;
  }

  get resumesAtMs(): number {
    return this.seat?.resumesAtMs ?? -Infinity;
  }

  pausedMsSince(atMs: number): number {
    return this.seat?.pausedMsSince(atMs) ?? 0;
  }

  /** Anything but a finite number is ignored. The number is the service's: a date taken for a span would be the end of all dispatch. */
  pause(durationMs: unknown, why: string = "a run asked for it"): void {
    if (!Number.isFinite(durationMs)) return;
    this.#why = why;
    (this.seat ??= new RateLimiter([])).pause(this.#clock.now(), Math.min(this.#maxPauseMs, durationMs as number));
  }

  /** Adds `difference`, which may be negative, to the weight that was counted for the last run. */
  correct(difference: number): void {
    this.seat?.correct(this.#clock.now(), difference);
  }

  /** An error of a run, which may ask for a pause. */
  failed(error: unknown): void {
    const retryAfterMs = propertyOf(error, "retryAfterMs");
    if (retryAfterMs === undefined) return;
    this.pause(retryAfterMs, `a run failed with retryAfterMs: ${describe(propertyOf(error, "message"))}`);
  }

  view(nowMs: number): BatcherStats["pause"] {
    const leftMs = this.resumesAtMs - nowMs;
    return leftMs > 0 ? { leftMs, why: this.#why || "the limit that it shares is paused" } : null;
  }
}
