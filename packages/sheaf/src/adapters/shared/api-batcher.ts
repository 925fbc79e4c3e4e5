import type { Batcher, Result } from "../../core/contract/batcher.ts";
import { systemClock } from "../../core/runtime/clock.ts";
import { createBatcher } from "../../core/create-batcher.ts";
import type { BatchFunction } from "../../core/contract/executor.ts";
import type { BatcherOptions } from "../../core/contract/options.ts";
import { blamesInputs } from "./api-error.ts";
import { defined } from "./defined.ts";
import { withRetries, type Retries } from "./retries.ts";

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

/**
 * A batcher whose batches are requests to an API: one that the API refused or failed goes again, and one that it calls
 * wrong is bisected. An option given as `undefined` keeps its default.
 */
export function apiBatcher<In, Out>(
  run: BatchFunction<In, Out>,
  { clock = systemClock, ...options }: BatcherOptions<In, Out>,
  retries: Omit<Retries, "clock">,
): Batcher<In, Result<Out>> {
  const given = defined(options);
  return createBatcher<In, Out>(withRetries(run, { ...retries, clock }), {
    ...apiDefaults,
    // A text that alone is more than a request may hold: the API would refuse it.
    maxItemWeight: given.maxBatchWeight ?? apiDefaults.maxBatchWeight,
    ...given,
    clock,
    onBatchError: "bisect",
    shouldBisect: blamesInputs,
  });
}
