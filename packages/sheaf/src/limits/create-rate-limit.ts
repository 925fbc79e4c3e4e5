import type { RateLimit, SharedRateLimit } from "../core/contract/rate-limit.ts";
import { checkClock, checkGivenLimits, limitsOf } from "../core/contract/settings.ts";
import { systemClock, type Clock } from "../core/runtime/runtime.ts";
import { checkOptions, withMethods, type Check } from "../shared/checks.ts";
import { LearnedRateLimit } from "./learned-rate-limit.ts";
import type { RateShares } from "./process-share.ts";

export interface RateLimitOptions {
  /**
   * Known limits, one or several: upper bounds of what is learned.
   * @default none: all is learned
   * @example
   * createRateLimit({ limits: { weight: 1_000_000, perMs: 60_000 } });
   */
  readonly limits?: RateLimit | readonly RateLimit[] | undefined;
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
  limits: checkGivenLimits,
  shares: withMethods("a store with renew() and leave(), such as rateShares()", "renew", "leave"),
  clock: checkClock,
} satisfies Record<keyof RateLimitOptions, Check>;

/**
 * A limit for one key and one model that several batchers share as their `rateLimit`, taking turns by weight. Adapters for APIs learn
 * it from replies; `limits` are upper bounds. With `shares`, processes divide it by demand.
 * @throws {TypeError | RangeError} for a wrong option.
 * @example const limit = createRateLimit(); openaiEmbeddings(client, { model: "text-embedding-3-small", rateLimit: limit });
 */
export function createRateLimit(options: RateLimitOptions = {}): SharedRateLimit {
  checkOptions(options, checks);
  const { limits, shares, clock = systemClock } = options;
  return new LearnedRateLimit(limitsOf(limits), clock, shares);
}
