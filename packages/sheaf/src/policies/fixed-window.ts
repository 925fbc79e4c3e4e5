import { checkOptions, oneOf } from "../shared/checks.ts";
import type { Decision, Policy, QueueView } from "./policy.ts";

/** @see fixedWindow */
export interface FixedWindowOptions {
  /** @default "hybrid" */
  readonly trigger?: "hybrid" | "size" | "time" | undefined;
}

/**
 * The three classic windows; the length of a window is the batcher's `maxWaitMs`.
 * - *hybrid*: a full batch, or maxWaitMs after the first item (later items never postpone it);
 * - *time*: every maxWaitMs all that waits goes, in ⌈n / maxBatchSize⌉ batches; a full batch does not go early;
 * - *size*: only a full batch (or maxWaitMs after the first item, if maxWaitMs is given).
 */
export function fixedWindow(options: FixedWindowOptions = {}): Policy {
  checkOptions(options, { trigger: oneOf("hybrid", "size", "time") });
  const { trigger = "hybrid" } = options;
  // The time trigger lets everything go that had arrived when a window ended, however many batches that makes.
  let releasedAtMs = -Infinity;
  const decide = (view: QueueView): Decision => {
    if (trigger !== "time" && view.waiting >= view.maxBatchSize) return { run: view.maxBatchSize };
    const endsAtMs = view.oldestAtMs + view.maxWaitMs;
    if (trigger === "time" && view.nowMs >= endsAtMs) releasedAtMs = view.nowMs;
    if (view.nowMs >= endsAtMs || view.oldestAtMs <= releasedAtMs) return { run: view.waiting, reason: "window" };
    return endsAtMs === Infinity ? "wait" : { askAgainAtMs: endsAtMs };
  };
  return {
    name: trigger === "hybrid" ? "fixed-window" : `fixed-window-${trigger}`,
    needsMaxWaitMs: trigger !== "size",
    decide,
  };
}
