import type { SharedRateLimit } from "../core/contract/rate-limit.ts";
import { checkClock } from "../core/contract/settings.ts";
import { systemClock, type Clock } from "../core/runtime/clock.ts";
import { check, checkCount, checkOptions, checkPositive, withMethods, type Check } from "../shared/checks.ts";
import { LearnedRateLimit } from "./learned-rate-limit.ts";
import type { RateShares } from "./process-share.ts";

/** Options of `createRateLimit`: known limits, and the store over which processes divide them. */
export interface RateLimitOptions {
  /**
   * Runs per `perMs`, at most.
   * @default no bound: it is learned
   */
  readonly runs?: number | undefined;
  /**
   * Items per `perMs`, at most.
   * @default no bound
   */
  readonly items?: number | undefined;
  /**
   * Weight per `perMs`, such as tokens, at most.
   * @default no bound: it is learned
   */
  readonly weight?: number | undefined;
  /**
   * Length of the period in milliseconds.
   * @default 60000
   */
  readonly perMs?: number | undefined;
  /**
   * The store over which processes divide the limit.
   * @default none: this process has all of it
   * @example
   * createRateLimit({ shares: rateShares(pool, { limit: "openai text-embedding-3-small" }) });
   */
  readonly shares?: RateShares | undefined;
  /**
   * The clock of its batchers.
   * @default the system's clock
   */
  readonly clock?: Clock | undefined;
}

const checks = {
  runs: checkCount,
  items: checkCount,
  weight: checkPositive,
  perMs: checkPositive,
  shares: withMethods("a store with renew() and leave(), such as rateShares()", "renew", "leave"),
  clock: checkClock,
} satisfies Record<keyof RateLimitOptions, Check>;

/**
 * A limit for one key and one model, which several batchers share as their `rateLimit`, by turns in weight. Adapters of APIs
 * learn it from replies; the numbers given here are upper bounds. With `shares`, processes divide it by their demand.
 * @throws {TypeError | RangeError} for a wrong option.
 * @example
 * const limit = createRateLimit();
 * openaiEmbeddings(client, { model: "text-embedding-3-small", rateLimit: limit });
 */
export function createRateLimit(options: RateLimitOptions = {}): SharedRateLimit {
  checkOptions(options, checks);
  const { perMs = 60_000, shares, clock = systemClock } = options;
  check(perMs < Infinity, "perMs", "a finite number of milliseconds", perMs);
  return new LearnedRateLimit({ ...options, perMs }, clock, shares);
}
