import type { RateLimitSeat } from "../../contract/rate-limit.ts";
import type { Clock } from "../../runtime/clock.ts";
import { propertyOf } from "../../../shared/describe.ts";
import { RateLimiter } from "./rate-limit.ts";

/** What dispatch waits for: the rate limit, and the pauses that runs ask for. */
export class Pace {
  /** `undefined` without a rate limit, until a run asks for a pause. */
  seat: RateLimitSeat | undefined;
  /** The most that the batch may weigh that is chosen now. */
  maxWeight: number = Infinity;
  readonly #clock: Clock;

  constructor(clock: Clock, seat: RateLimitSeat | undefined) {
    this.#clock = clock;
    this.seat = seat;
  }

  get pausedUntilMs(): number {
    return this.seat?.pausedUntilMs ?? -Infinity;
  }

  pausedMsSince(atMs: number): number {
    return this.seat?.pausedMsSince(atMs) ?? 0;
  }

  pause(durationMs: number): void {
    (this.seat ??= new RateLimiter([])).pause(this.#clock.now(), durationMs);
  }

  /** An error of a run or an item, which may ask for a pause. */
  failed(error: unknown): void {
    const retryAfterMs = propertyOf(error, "retryAfterMs");
    if (retryAfterMs !== undefined) this.pause(retryAfterMs as number);
  }
}
