import type { QueueView } from "../policy.ts";
import { batchesToTrust, budgetDeviations, budgetRuns } from "./constants.ts";

/** Rule *budget*: until when all that waits can be held, so that its oldest item is answered within the budget. */
export function budgetUntil({ nowMs, waiting, oldestAtMs, cost, nextMs }: QueueView, latencyBudgetMs: number): number {
  if (cost.batches < batchesToTrust) return nowMs;
  return oldestAtMs + latencyBudgetMs - nextMs(waiting) * (budgetRuns + budgetDeviations * cost.noise);
}
