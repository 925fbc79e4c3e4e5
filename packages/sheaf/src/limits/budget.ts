import type { Flow } from "../core/dispatch/bulk-share.ts";
import type { ToldLimit } from "./told-limits.ts";

/** A service whose bucket is smaller than a minute's limit holds about ten seconds of it. */
const burstMs = 10_000;
/** A limit per minute resets within a minute; one that takes longer is per hour or per day. */
const longestMinuteMs = 70_000;
const minuteMs = 60_000;
/** What a service tells holds until its bucket is whole again, within these bounds. Then it is believed less and less: one that
 * tells its limit with refusals alone never says that it has none any more. */
const toldMs = { least: 30_000, most: 120_000 };
const doublingMs = 5000;
const doublings = 10;
/** How long to wait before asking again, since the estimate of the limit changes. */
const lookAgainMs = 5000;
/** Share of a burst that is sent at the start, while nothing says that the service's bucket is full. */
const startRate = 0.25;

/**
 * The estimate of one limit of a service (runs, items or weight) and of what is left of it. What the service reports replaces the
 * estimate. Of a given limit of a minute or less, only ten seconds' worth goes at once.
 */
export class Budget {
  /** This process's part of the limit, > 0 and <= 1. */
  share = 1;
  readonly #givenPerMs: number;
  readonly #givenHolds: number;
  #toldPerMs: number | undefined;
  #toldHolds = Infinity;
  #toldLimit: number | undefined;
  /** Until when the reported limit counts. */
  #toldUntilMs = -Infinity;
  #doublings = 0;
  #level: number;
  /** The amount that the waiting batch needs. */
  #asked = 0;
  #filledAtMs: number = -Infinity;

  constructor(given: readonly { readonly most: number; readonly perMs: number }[]) {
    const short = given.filter(({ perMs }) => perMs <= minuteMs);
    this.#givenPerMs = Math.min(...short.map(({ most, perMs }) => most / perMs));
    // At least one run, or none could ever start.
    this.#givenHolds = Math.min(
      ...short.map(({ most, perMs }) => Math.max(1, (most * Math.min(perMs, burstMs)) / perMs)),
    );
    this.#level = short.length === 0 ? 0 : Math.max(1, this.#givenHolds * startRate);
  }

  get isTold(): boolean {
    return this.#toldPerMs !== undefined;
  }

  /** The estimated limit per minute; Infinity if unknown. `pace` bounds it, in units per millisecond. */
  perMinute(pace: number): number {
    return Math.min(this.#wholePerMs, pace) * minuteMs;
  }

  /** How many milliseconds of the whole limit `used` amounts to; 0 if no limit is known. */
  usedMs(used: number): number {
    return used / this.#wholePerMs;
  }

  /** The inflow, and the most that can be left at once; undefined if no limit is known. */
  flow(pace: number): Flow | undefined {
    const perMs = this.#ratePerMs(pace);
    return perMs === Infinity ? undefined : { perMs, holds: this.#most(pace) };
  }

  left(nowMs: number, pace: number): number {
    this.#refill(nowMs, pace);
    return this.#ratePerMs(pace) === Infinity ? Infinity : this.#level;
  }

  /** The service said that its bucket is at least half full. */
  isHalfFull(nowMs: number): boolean {
    return this.isTold && this.left(nowMs, Infinity) >= 0.5 * this.share * this.holds(Infinity);
  }

  /** The most that can be left at once. */
  holds(pace: number): number {
    const most = this.isTold ? Math.min(this.#toldHolds, this.#toldLimit ?? Infinity) : this.#givenHolds;
    const bound = this.isTold && this.#givenPerMs < this.#toldPerMs! ? Math.min(most, this.#givenHolds) : most;
    return Math.min(bound, Math.max(1, pace * burstMs));
  }

  /** When to ask again: at the latest when `amount` is available, after the amount `ahead` that others get first. */
  readyAtMs(nowMs: number, amount: number, ahead: number, pace: number): number {
    this.#asked = amount;
    this.#refill(nowMs, pace);
    const ratePerMs = this.#ratePerMs(pace);
    if (ratePerMs === Infinity) return nowMs;
    const missing = Math.min(this.holds(pace), amount) + ahead - this.#level;
    // A millionth is a rounding error; waiting for it would set a timer of 0 ms.
    return missing <= 1e-6 ? nowMs : nowMs + Math.min(lookAgainMs, missing / ratePerMs);
  }

  /** How long until `amount` is available, after the amount `ahead` that others get first. */
  waitMs(nowMs: number, amount: number, ahead: number, pace: number): number {
    const missing = Math.max(0, ahead + Math.min(this.holds(pace), amount) - this.left(nowMs, pace));
    return missing === 0 ? 0 : missing / this.#ratePerMs(pace);
  }

  spend(nowMs: number, amount: number, pace: number): void {
    this.#refill(nowMs, pace);
    this.#level = Math.min(this.#most(pace), this.#level - amount);
  }

  /** Records a refusal: at `atMs` the service has `amount`, according to its own words, less what is then `due`. */
  refused(nowMs: number, amount: number, due: number, atMs: number, pace: number): void {
    this.#refill(nowMs, pace);
    if (this.#ratePerMs(pace) < Infinity) this.#level = Math.min(this.holds(pace), amount) - due - this.#ratePerMs(pace) * (atMs - nowMs); // prettier-ignore
  }

  /** Records the limit in a reply. The service may or may not have counted the amount `inFlight` yet. */
  told({ limit, remaining, resetMs }: ToldLimit, nowMs: number, inFlight: number, pace: number): void {
    if (remaining === undefined) return;
    this.#refill(nowMs, pace);
    this.#toldUntilMs = nowMs + Math.min(toldMs.most, Math.max(toldMs.least, resetMs ?? 0));
    this.#doublings = 0;
    const most = limit !== undefined && limit > 0 ? limit : Math.max(this.#toldLimit ?? 0, remaining);
    if (most <= 0) return;
    const taken = most - remaining;
    const isLong = resetMs !== undefined && resetMs > longestMinuteMs && taken > 0;
    this.#toldLimit = most;
    this.#toldPerMs = isLong ? taken / resetMs : most / minuteMs;
    // What flows in until the reset, plus what is left, is what the bucket holds.
    const holds = resetMs === undefined ? most : Math.min(most, remaining + resetMs * this.#toldPerMs);
    const isLess = holds < this.#toldHolds && this.#toldHolds <= most;
    this.#toldHolds = Math.max(1, isLess ? this.#toldHolds + 0.2 * (holds - this.#toldHolds) : holds);
    const left = this.share * Math.min(remaining, most) - inFlight;
    // A stated limit below the service's allows less than the service reports as left.
    this.#level = this.#givenPerMs < this.#toldPerMs ? Math.min(this.#level, left) : left;
  }

  get #wholePerMs(): number {
    return Math.min(this.#givenPerMs, this.#toldPerMs ?? Infinity);
  }

  /** A pace is not divided by `share`: this process alone has measured it. */
  #ratePerMs(pace: number): number {
    return Math.min(this.share * this.#wholePerMs, pace);
  }

  /** The most that may be left: this process's part of the bucket, or enough for the batch that waits. */
  #most(pace: number): number {
    const holds = this.holds(pace);
    return this.share === 1 ? holds : Math.max(this.share * holds, Math.min(holds, this.#asked));
  }

  /** Raises the limit step by step if nothing was reported for long. */
  #doubt(nowMs: number): void {
    while (this.isTold && nowMs >= this.#toldUntilMs) {
      this.#toldUntilMs += doublingMs;
      this.#toldPerMs! *= 2;
      this.#toldHolds *= 2;
      this.#toldLimit! *= 2;
      if (++this.#doublings < doublings) continue;
      this.#toldPerMs = this.#toldLimit = undefined;
      this.#toldHolds = Infinity;
      this.#level = Math.max(0, this.#level);
    }
  }

  #refill(nowMs: number, pace: number): void {
    this.#doubt(nowMs);
    const elapsedMs = this.#filledAtMs === -Infinity ? 0 : nowMs - this.#filledAtMs;
    this.#filledAtMs = Math.max(this.#filledAtMs, nowMs);
    const ratePerMs = this.#ratePerMs(pace);
    if (elapsedMs <= 0 || ratePerMs === Infinity) return;
    // The service may have reported more than the estimated size of its bucket.
    this.#level = Math.max(this.#level, Math.min(this.#most(pace), this.#level + ratePerMs * elapsedMs));
  }
}
