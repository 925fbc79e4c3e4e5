import type { SharedRateLimit } from "../core/contract/rate-limit.ts";
import { check, checkCount, checkOptions, checkPositive } from "../shared/checks.ts";
import { LearnedRateLimit } from "./learned-rate-limit.ts";

/** Options of `createRateLimit`: limits that are known. */
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
}

/**
 * A limit for one key and one model, which several batchers share as their `rateLimit`, by turns in weight. Adapters of APIs
 * learn it from replies; the numbers given here are upper bounds.
 * @throws {TypeError | RangeError} for a wrong option.
 * @example
 * const limit = createRateLimit();
 * openaiEmbeddings(client, { model: "text-embedding-3-small", rateLimit: limit });
 */
export function createRateLimit(options: RateLimitOptions = {}): SharedRateLimit {
  checkOptions(options, { runs: checkCount, items: checkCount, weight: checkPositive, perMs: checkPositive });
  const { perMs = 60_000 } = options;
  check(perMs < Infinity, "perMs", "a finite number of milliseconds", perMs);
  return new LearnedRateLimit({ ...options, perMs });
}
