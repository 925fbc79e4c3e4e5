import type { Clock } from "../../core/runtime/clock.ts";
import type { BatchContext } from "../../core/contract/batch-context.ts";
import type { BatchFunction } from "../../core/contract/executor.ts";
import { errorHints, isLostConnection, withHints } from "./api-error.ts";

/** How a batch that failed for the service's sake is run again. */
export interface Retries {
  /** Runs after the first, at most; those that 429 refused while other batches got through do not count. */
  readonly maxRetries: number;
  /** `"refused"`: only after 429. `"failed"`: after 408, 409, 5xx and lost connections too. */
  readonly after: "refused" | "failed";
  readonly clock: Clock;
}

/** The first wait where the API names none; doubled each time, as openai's client does. */
const firstBackoffMs = 500;
const longestBackoffMs = 8000;
/** A longer pause is not waited for inside a slot: the callers get the error. */
const longestWaitMs = 30_000;
/** However many others get through meanwhile. */
const maxRefusals = 20;

/**
 * Runs a batch again that the API refused or failed. The wait that an API asks for holds everything back, not this batch
 * alone: other batches would only be refused too. The time that counts for policies is that of the run that succeeded.
 */
export function withRetries<In, Out>(run: BatchFunction<In, Out>, options: Retries): BatchFunction<In, Out> {
  const { maxRetries, after, clock } = options;
  let pausedUntilMs = -Infinity;
  let successes = 0;
  return async (items, context) => {
    let failures = 0;
    let refusals = 0;
    for (;;) {
      const successesBefore = successes;
      try {
        const results = await run(items, context);
        successes++;
        return results;
      } catch (error) {
        const hints = errorHints(error);
        const isRefused = hints.status === 429;
        // An API that takes some batches and refuses others works: this one's turn will come.
        failures = isRefused && successes > successesBefore && ++refusals < maxRefusals ? 1 : failures + 1;
        const waitMs = hints.retryAfterMs ?? Math.min(longestBackoffMs, firstBackoffMs * 2 ** (failures - 1));
        const isWorthAnother = isRefused || (after === "failed" && isFailure(error, hints.status));
        const isOver = failures > maxRetries || waitMs > longestWaitMs || context.signal.aborted;
        if (isOver || !isWorthAnother) throw withHints(error, hints);
        if (hints.retryAfterMs !== undefined) {
          pausedUntilMs = Math.max(pausedUntilMs, clock.now() + waitMs);
          context.pause(waitMs);
        }
        // Meanwhile another batch may get a longer pause.
        await wait(waitMs, context, clock);
        while (clock.now() < pausedUntilMs) await wait(pausedUntilMs - clock.now(), context, clock);
        context.countRun();
      }
    }
  };
}

/** The service failed, and may not the next time. False for an abort and for an item's own fault. */
function isFailure(error: unknown, status: number | undefined): boolean {
  return status === undefined ? isLostConnection(error) : status === 408 || status === 409 || status >= 500;
}

/** Ends early, with the reason, when every caller of the batch has left. */
function wait(waitMs: number, { signal }: BatchContext, clock: Clock): Promise<void> {
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
