import type { Clock } from "../../core/runtime/runtime.ts";
import type { BatchContext, BatchFunction } from "../../core/contract/executor.ts";
import { errorHints, isLostConnection, withHints, type ErrorHints } from "./api-error.ts";
import { backOffMs } from "./back-off.ts";
import { OutagePause } from "./outage-pause.ts";
import { RetryBudget } from "./retry-budget.ts";

/** The retries that a service's successes have paid for, and the pause where everything fails. */
export class ServiceHealth {
  readonly budget: RetryBudget;
  readonly outage: OutagePause;
  successes = 0;
  succeededAtMs: number = -Infinity;
  resumesAtMs: number = -Infinity;

  /** `share`: retries that each success pays for. */
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

/** How a batch that failed for the service's sake is run again. */
export interface Retries {
  /** Runs after the first, at most; those that 429 refused while other batches got through do not count. */
  readonly maxRetries: number;
  /**
   * `"refused"`: after 429, since none of the batch ran. `"failed"`: after 408, 409, 5xx and lost connections, where to run twice
   * does no harm; `withRateLimit` puts the items of a 429 back then.
   */
  readonly after: "refused" | "failed";
  /** Retries that each success pays for, > 0 and <= 1. Default 0.2. */
  readonly budget?: number | undefined;
  /** Shared with others who call the same service. Default: its own, of that `budget`. */
  readonly health?: ServiceHealth | undefined;
  /** Whether the last retry of several items is left to the code that finds the item at fault. */
  readonly leavesLast?: ((error: unknown) => boolean) | undefined;
  readonly clock: Clock;
  /** 0 to 1, for the jitter. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
}

/** A longer pause is not waited for inside a slot: the callers get the error. */
const longestWaitMs = 30_000;
/** However many others get through meanwhile. */
const maxRefusals = 20;

/**
 * Runs a batch again that the service refused, or one that it failed, while the retry budget lasts. The wait that a service asks for
 * holds everything back, not this batch alone: other batches would only be refused too. Where everything fails, nothing is
 * sent for a while. The time that counts for policies is that of the run that succeeded.
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
        // A service that names a wait is asked again after it.
        else if (hints.retryAfterMs === undefined) pauseIfOut(sentAtMs, context);
        // One that takes some batches and refuses others works: this one's turn will come.
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

/** The service failed, and may not the next time. False for an abort and for an item's own fault. */
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
