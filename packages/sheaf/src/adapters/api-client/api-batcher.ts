import type { Batcher, Result } from "../../core/contract/batcher.ts";
import { systemClock, type Clock } from "../../core/runtime/runtime.ts";
import { assembleBatcher } from "../../core/assemble-batcher.ts";
import { defaults, type BatcherOptions } from "../../core/contract/options.ts";
import { batcherChecks, isShared, limitsOf } from "../../core/contract/settings.ts";
import { auto } from "../../policies/auto/index.ts";
import { LearnedRateLimit } from "../../limits/learned-rate-limit.ts";
import type { RequestSize } from "../../limits/request-sizes.ts";
import { check, checkFunction } from "../../shared/checks.ts";
import { defined } from "../../shared/defined.ts";
import { blames, isHang, withIsolation } from "./isolation.ts";
import { withRateLimit, type ApiRun } from "./rate-limited.ts";
import { ServiceHealth, withRetries } from "./retries.ts";
import { TokenScale } from "./tokens/token-scale.ts";
import { utf8Bytes } from "../shared/utf8-bytes.ts";

/** Limits of the requests to an embeddings API. */
export interface RequestLimits {
  /**
   * Most inputs in a request; integer >= 1.
   * @default 100
   * @see maxBatchWeight
   */
  readonly maxBatchSize?: number | undefined;
  /**
   * Maximum time to hold an input while a request could go, in milliseconds.
   * @default 20
   */
  readonly maxWaitMs?: number | undefined;
  /**
   * Most requests in flight; integer >= 1.
   * @default learned, from 8 on
   */
  readonly concurrency?: number | undefined;
  /**
   * Most tokens in a request.
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
  /**
   * Whether an error of a request may be the fault of one of its texts, which is then isolated. With any but 400, 413 and 422
   * only if other requests succeed.
   * @default true for the statuses 400, 413 and 422, for 403 and from 500 on without `Retry-After`, for lost connections and `RUN_TIMEOUT`
   */
  readonly shouldBisect?: ((error: unknown) => boolean) | undefined;
}

/**
 * Defaults for remote embeddings APIs: 100 inputs fill a request well, 20 ms is short compared with the API's reply, and OpenAI's API
 * takes 300,000 tokens in a request.
 */
export const apiDefaults = {
  maxBatchSize: 100,
  maxWaitMs: 20,
  maxBatchWeight: 300_000,
} as const;

/** Requests in flight at first. Requests to an API are rarely full, so a learned limit that began at 4 would stay there. */
const startConcurrency = 8;

/** How an adapter's items are counted and its requests retried. */
export interface ApiUse<In> {
  /** The text of an item; estimates are scaled by the kind of text. */
  readonly textOf: (item: In) => unknown;
  /** Tokens of an item; scaled by the API's counts. */
  readonly estimate: (item: In) => number;
  /** Retries of a batch that the API failed. Default 0. */
  readonly maxRetries?: number | undefined;
  /** Retries earned by each success. Default 0.2. */
  readonly budget?: number | undefined;
  /** 0 to 1, for the jitter. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
}

/**
 * A batcher whose batches are requests to an API, at the rate and size that it allows. A request that the API failed is retried; one
 * that it refuses as wrong is split. An option given as `undefined` keeps its default.
 */
export function apiBatcher<In, Out>(
  run: ApiRun<In, Out>,
  { clock = systemClock, rateLimit, shouldBisect, ...options }: BatcherOptions<In, Out>,
  { textOf, estimate, maxRetries = 0, budget, random = Math.random }: ApiUse<In>,
): Batcher<In, Result<Out>> {
  const given = defined(options);
  const { name = defaults.name, maxPauseMs = defaults.maxPauseMs, runTimeoutMs = Infinity } = given;
  if (shouldBisect !== undefined) checkFunction("shouldBisect", shouldBisect);
  const limit = limitOf(rateLimit, clock);
  const scale = new TokenScale();
  const health = new ServiceHealth(budget, random);
  const weigh = (item: In): number => scale.weigh(textOf(item), estimate(item));
  const sizeOf = (items: readonly In[]): RequestSize => ({
    items: items.length,
    tokens: items.reduce((sum, item) => sum + weigh(item), 0),
    bytes: items.reduce((sum, item) => sum + bytesOf(textOf(item)), 0),
  });
  const once = withRateLimit(run, { limit, scale, textOf, estimate, sizeOf, maxPauseMs, clock });
  const blameOf = blames(shouldBisect);
  const leavesLast = (error: unknown): boolean => blameOf(error) === "failure";
  const patiently = withRetries(once, { maxRetries, after: "failed", health, leavesLast, random, clock });
  const { maxBatchWeight: maxTokens = apiDefaults.maxBatchWeight } = given;
  return assembleBatcher<In, Out>(
    withIsolation({ name, limit, health, clock, random, sizeOf, maxTokens, textOf, blameOf, once, patiently }),
    {
      ...apiDefaults,
      // The API would refuse a text that exceeds a request on its own.
      maxItemWeight: maxTokens,
      ...given,
      weigh,
      rateLimit: limit,
      clock,
      // The core searches only abandoned runs, if others got through at about the same time. All other failures are split inside a
      // run.
      onBatchError: "bisect",
      shouldBisect: (error) =>
        isHang(error) && health.succeededAtMs > clock.now() - 2 * runTimeoutMs && blameOf(error) !== "none",
    },
    auto,
    undefined,
    startConcurrency,
  );
}

/** Of a text in a request's body. */
const bytesOf = (text: unknown): number =>
  utf8Bytes(typeof text === "string" ? text : (JSON.stringify(text) ?? "")) + 3;

/** The given shared limit, or a new one that learns, with the given numbers as upper bounds. */
export function limitOf(rateLimit: BatcherOptions<never, never>["rateLimit"], clock: Clock): LearnedRateLimit {
  if (rateLimit instanceof LearnedRateLimit) return rateLimit;
  if (rateLimit !== undefined) batcherChecks.rateLimit("rateLimit", rateLimit);
  check(!isShared(rateLimit), "rateLimit", "numbers, or a limit of createRateLimit()", rateLimit, TypeError);
  return new LearnedRateLimit(limitsOf(rateLimit), clock);
}
