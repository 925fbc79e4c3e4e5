import type { QueueView } from "../policy.ts";
import type { ArrivalRate } from "./arrival-rate.ts";
import { eagerLateShare } from "./eager.ts";
import {
  batchesToTrust,
  budgetRuns,
  deadlineDeviations,
  eagerEveryMs,
  eagerLateAtMost,
  eagerMargin,
  leastShared,
  lookGain,
  looseRuns,
  nearMargin,
  sharesHeld,
} from "./constants.ts";

/**
 * Rule *deadline*, where waiting calls have one and no budget is given. While eager dispatch would not serve the arrivals in time, hold until
 * the first deadline of the waiting items leaves just the time of their run: evenly filled batches serve a higher rate. At a lower
 * rate a hold would only make callers wait.
 */
export class DeadlineRule {
  /** Eager dispatch is near the highest rate that it serves in time, or beyond: all that waits goes at once. */
  isNear = false;
  #isBeyond = false;
  #lookAtMs = -Infinity;
  #looks = 0;
  /** Arrivals per millisecond, over about the last looks. */
  #perMs = 0;

  /** @param share the items that a slot can expect */
  until(view: QueueView, share: number, rate: ArrivalRate): number {
    const { nowMs, waiting, deadlineAtMs, cost, nextMs } = view;
    if (nowMs >= this.#lookAtMs) this.#look(view, rate);
    if (!this.#isBeyond || waiting >= sharesHeld * share) return nowMs;
    // With room for one more: without it, the next arrival would make the batch late.
    const runMs = nextMs(waiting) + Math.max(0, cost.at(waiting + 1) - cost.at(waiting));
    return deadlineAtMs - runMs * (budgetRuns + deadlineDeviations * cost.noise);
  }

  #look({ nowMs, oldestAtMs, deadlineAtMs, slots, maxBatchSize, cost }: QueueView, rate: ArrivalRate): void {
    this.#lookAtMs = nowMs + eagerEveryMs;
    this.isNear = this.#isBeyond = false;
    const withinMs = deadlineAtMs - oldestAtMs;
    // Slots that start one after the other, each with as much as it can answer in time after the wait for its turn.
    const largestRunMs = (withinMs * slots) / (slots + 1);
    if (slots === 1 || cost.batches < batchesToTrust || cost.line(1) > largestRunMs) return;
    if (withinMs >= looseRuns * cost.line(maxBatchSize)) return;
    const isLateAt = (perMs: number): boolean =>
      eagerLateShare(cost, { perMs, slots, maxBatchSize, withinMs }) > eagerLateAtMost;
    this.#perMs += Math.max(lookGain, 1 / ++this.#looks) * (rate.perMs(nowMs) - this.#perMs);
    this.isNear = isLateAt(nearMargin * this.#perMs);
    const gainsByHolds = cost.fixedMs >= leastShared * Math.min(largestRunMs, cost.line(maxBatchSize));
    this.#isBeyond = this.isNear && gainsByHolds && isLateAt(eagerMargin * this.#perMs);
  }
}
