import type { Batcher, Result } from "../../core/contract/batcher.ts";
import { systemClock, type Clock } from "../../core/runtime/clock.ts";
import { createBatcher } from "../../core/create-batcher.ts";
import { defaults, type BatcherOptions } from "../../core/contract/options.ts";
import type { RateLimit, SharedRateLimit } from "../../core/contract/rate-limit.ts";
import { batcherChecks, isShared } from "../../core/contract/settings.ts";
import { LearnedRateLimit } from "../../limits/learned-rate-limit.ts";
import { check } from "../../shared/checks.ts";
import { blamesInputs } from "./api-error.ts";
import { defined } from "./defined.ts";
import { withRateLimit, type ApiRun } from "./rate-limited.ts";
import { withRetries, type Retries } from "./retries.ts";
import { TokenScale } from "./tokens/token-scale.ts";

/** Limits of the requests to an embeddings API, with defaults that suit one. */
export interface RequestLimits {
  /**
   * Most inputs in a request; integer >= 1.
   * @default 100
   * @see maxBatchWeight
   */
  readonly maxBatchSize?: number | undefined;
  /**
   * Cap on voluntary holding, in milliseconds: while a slot is free the oldest input waits no longer.
   * @default 20
   */
  readonly maxWaitMs?: number | undefined;
  /**
   * Most requests in flight; integer >= 1.
   * @default 8
   */
  readonly concurrency?: number | undefined;
  /**
   * Tokens up to which a request is filled.
   * @default 300000
   * @see weigh
   * @see maxItemWeight
   */
  readonly maxBatchWeight?: number | undefined;
  /**
   * A text with more tokens is refused with `ITEM_TOO_LARGE`.
   * @default the `maxBatchWeight`
   * @see maxBatchWeight
   */
  readonly maxItemWeight?: number | undefined;
}

/**
 * Where to start with a remote embeddings API: 100 inputs fill a request well, 20 ms are little beside its answer, and
 * OpenAI's API takes 300,000 tokens in a request.
 */
export const apiDefaults = {
  maxBatchSize: 100,
  maxWaitMs: 20,
  concurrency: 8,
  maxBatchWeight: 300_000,
} as const;

/** How an adapter's items are counted and its requests retried. */
export interface ApiUse<In> extends Partial<Omit<Retries, "after" | "clock">> {
  /** The text of an item, by whose kind estimates are scaled. */
  readonly textOf: (item: In) => unknown;
  /** Tokens of an item; scaled by the API's counts. */
  readonly estimate: (item: In) => number;
}

/**
 * A batcher whose batches are requests to an API, at the rate that it allows: one that the API failed goes again, and one that
 * it calls wrong is bisected. An option given as `undefined` keeps its default.
 */
export function apiBatcher<In, Out>(
  run: ApiRun<In, Out>,
  { clock = systemClock, rateLimit, ...options }: BatcherOptions<In, Out>,
  { textOf, estimate, maxRetries = 0, budget, random }: ApiUse<In>,
): Batcher<In, Result<Out>> {
  const given = defined(options);
  const limit = limitOf(rateLimit, clock);
  const scale = new TokenScale();
  const { maxPauseMs = defaults.maxPauseMs } = given;
  const once = withRateLimit(run, { limit, scale, textOf, estimate, maxPauseMs, clock });
  return createBatcher<In, Out>(withRetries(once, { maxRetries, after: "failed", budget, random, clock }), {
    ...apiDefaults,
    // A text that alone is more than a request may hold: the API would refuse it.
    maxItemWeight: given.maxBatchWeight ?? apiDefaults.maxBatchWeight,
    ...given,
    weigh: (item) => scale.weigh(textOf(item), estimate(item)),
    rateLimit: limit,
    clock,
    onBatchError: "bisect",
    shouldBisect: blamesInputs,
  });
}

/** The limit that was given, or one of its own that learns, with given numbers as upper bounds. */
function limitOf(rateLimit: RateLimit | SharedRateLimit | undefined, clock: Clock): LearnedRateLimit {
  if (rateLimit instanceof LearnedRateLimit) return rateLimit;
  if (rateLimit === undefined) return new LearnedRateLimit({ perMs: 60_000 }, clock);
  batcherChecks.rateLimit("rateLimit", rateLimit);
  check(!isShared(rateLimit), "rateLimit", "numbers, or a limit of createRateLimit()", rateLimit, TypeError);
  return new LearnedRateLimit(rateLimit, clock);
}
