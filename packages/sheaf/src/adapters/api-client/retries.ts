import type { Clock } from "../../core/runtime/runtime.ts";
import type { BatchContext, BatchFunction } from "../../core/contract/executor.ts";
import { errorHints, isLostConnection, withHints, type ErrorHints } from "./api-error.ts";
import { backOffMs } from "./back-off.ts";
import { OutagePause } from "./outage-pause.ts";
import { RetryBudget } from "./retry-budget.ts";

/** A service's retry budget, and the pause while everything fails. */
export class ServiceHealth {
  readonly budget: RetryBudget;
  readonly outage: OutagePause;
  successes = 0;
  succeededAtMs: number = -Infinity;
  resumesAtMs: number = -Infinity;

  /** `share`: retries earned by each success. */
  constructor(share: number | undefined, random: () => number) {
    this.budget = new RetryBudget(share);
    this.outage = new OutagePause(random);
  }

  succeeded(nowMs: number): void {
    this.successes++;
    this.succeededAtMs = nowMs;
    this.budget.succeeded();
    this.outage.answered();
  }
}

/** How a batch that the service failed is retried. */
export interface Retries {
  /** Most retries; a 429 does not count if other batches got through meanwhile. */
  readonly maxRetries: number;
  /**
   * `"refused"`: after 429, since none of the batch ran. `"failed"`: after 408, 409, 5xx and lost connections, for runs that are safe
   * to repeat; `withRateLimit` then puts the items of a 429 back.
   */
  readonly after: "refused" | "failed";
  /** Retries earned by each success, > 0 and <= 1. Default 0.2. */
  readonly budget?: number | undefined;
  /** Shared with other callers of the same service. Default: a new one with that `budget`. */
  readonly health?: ServiceHealth | undefined;
  /** Whether to leave the last retry of several items to the search for the item at fault. */
  readonly leavesLast?: ((error: unknown) => boolean) | undefined;
  readonly clock: Clock;
  /** 0 to 1, for the jitter. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
}

/** A longer wait would occupy the slot: callers get the error instead. */
const longestWaitMs = 30_000;
/** Most refusals of one batch, however many others get through meanwhile. */
const maxRefusals = 20;

/**
 * Retries a batch that the service refused, or one that it failed, while the retry budget lasts. A wait that the service asks for
 * holds everything back, because other batches would be refused too. While everything fails, requests pause. Policies see only the
 * time of the run that succeeded.
 */
export function withRetries<In, Out>(run: BatchFunction<In, Out>, options: Retries): BatchFunction<In, Out> {
  const { maxRetries, after, clock, random = Math.random, leavesLast } = options;
  const health = options.health ?? new ServiceHealth(options.budget, random);
  const { budget, outage } = health;
  const pause = (durationMs: number, context: BatchContext): void => {
    health.resumesAtMs = Math.max(health.resumesAtMs, clock.now() + durationMs);
    context.pause(durationMs);
  };
  return async (items, context) => {
    let failures = 0;
    let refusals = 0;
    let successesBefore = health.successes;
    for (;;) {
      const sentAtMs = clock.now();
      try {
        const results = await run(items, context);
        health.succeeded(clock.now());
        return results;
      } catch (error) {
        const hints = errorHints(error);
        const isRefused = after === "refused" && hints.status === 429;
        const isFailed = isFailure(error, hints.status);
        if (!isFailed) outage.answered();
        // If the service names a wait, that wait decides.
        else if (hints.retryAfterMs === undefined) pauseIfOut(sentAtMs, context);
        // A service that takes some batches works: this one's turn will come.
        const isCrowdedOut = isRefused && health.successes > successesBefore && ++refusals < maxRefusals;
        failures = isCrowdedOut ? 1 : failures + 1;
        const waitMs = hints.retryAfterMs ?? backOffMs(failures, random());
        const isWorthAnother = after === "refused" ? isRefused : isFailed;
        const leaves = items.length > 1 && maxRetries > 1 && leavesLast?.(error) === true;
        const mostRetries = leaves ? maxRetries - 1 : maxRetries;
        const isOver = failures > mostRetries || waitMs > longestWaitMs || context.signal.aborted;
        if (isOver || !isWorthAnother || !(isCrowdedOut || budget.spend())) throw hinted(error, hints);
        if (hints.retryAfterMs !== undefined) pause(waitMs, context);
        successesBefore = health.successes;
        // Meanwhile another batch may get a longer pause.
        await wait(waitMs, context, clock);
        while (clock.now() < health.resumesAtMs) await wait(health.resumesAtMs - clock.now(), context, clock);
        if (isRefused && !isCrowdedOut && health.successes > successesBefore) budget.refund();
        context.countRun();
      }
    }
  };

  /** `withRateLimit` has said how long a 429 pauses. */
  function hinted(error: unknown, hints: ErrorHints): unknown {
    return after === "failed" && hints.status === 429 ? error : withHints(error, hints);
  }

  function pauseIfOut(sentAtMs: number, context: BatchContext): void {
    const durationMs = outage.failed(sentAtMs, clock.now());
    if (durationMs !== undefined) pause(durationMs, context);
  }
}

/** Whether the service failed, so that a retry may help. False for an abort and for an item's own fault. */
function isFailure(error: unknown, status: number | undefined): boolean {
  return status === undefined ? isLostConnection(error) : status === 408 || status === 409 || status >= 500;
}

/** Ends early, with the reason, when every caller of the batch has left. */
export function wait(waitMs: number, { signal }: BatchContext, clock: Clock): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(waitMs, () => {
      signal.removeEventListener("abort", abort);
      resolve();
    });
    const abort = (): void => {
      cancel();
      reject(signal.reason as Error);
    };
    signal.addEventListener("abort", abort, { once: true });
  });
}
