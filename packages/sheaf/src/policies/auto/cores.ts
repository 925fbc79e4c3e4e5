import type { BatchRecord, QueueView } from "../policy.ts";
import type { ArrivalRate } from "./arrival-rate.ts";
import {
  delayGain,
  leastPartMs,
  moreItems,
  partsWaited,
  recentCrowdGain,
  shareSlack,
  shortestHoldMs,
} from "./constants.ts";

/**
 * Rule *cores*: where cores are short, each batch costs all other work its fixed part. So the next one is held for others to
 * join it, at most as long as that part takes with the way to its worker and back.
 */
export class CoresRule {
  /** The way to the worker and back, as far as it is no longer than the run itself. */
  #delayMs = 0;
  /** The most items at once, soon forgotten: callers that have gone are not waited for. */
  #crowd = 1;
  /** Holds shorter than a timer add up until they make one. */
  #owedMs = 0;
  /** End of the hold of the next batch; undefined until it is decided. */
  #endsAtMs: number | undefined;

  observe({ tookMs, runMs, outcome }: BatchRecord): void {
    // A batch that went ahead to a busy slot waited for the run before it as well.
    if (outcome === "ok") this.#delayMs += delayGain * (Math.min(tookMs - runMs, runMs) - this.#delayMs);
  }

  arrived({ arrivals, outstanding }: QueueView): void {
    const gain = Math.min(1, recentCrowdGain * arrivals);
    this.#crowd = Math.max(outstanding, this.#crowd + gain * (outstanding - this.#crowd));
  }

  dispatched(): void {
    this.#endsAtMs = undefined;
  }

  /** @param share the items that a slot can expect: with as many here, no other is worth waiting for */
  until(view: QueueView, share: number, rate: ArrivalRate): number {
    const { nowMs, waiting, slots, coreShortage = 0 } = view;
    if (coreShortage <= 0 || waiting >= Math.min(share, this.#crowd / slots - shareSlack)) return nowMs;
    return (this.#endsAtMs ??= nowMs + this.#holdMs(view, coreShortage, rate));
  }

  #holdMs(
    { nowMs, waiting, oldestAtMs, deadlineAtMs, cost }: QueueView,
    coreShortage: number,
    rate: ArrivalRate,
  ): number {
    const { fixedMs } = cost;
    const partMs = fixedMs + Math.min(fixedMs, this.#delayMs);
    const holdMs = Math.max(shortestHoldMs, coreShortage * partMs);
    if (partMs < leastPartMs || nowMs - oldestAtMs > partsWaited * partMs) return 0;
    if (rate.perMs(nowMs) * holdMs < moreItems * waiting) return 0;
    if (nowMs + holdMs + 2 * cost.at(waiting) > deadlineAtMs) return 0;
    this.#owedMs += coreShortage * partMs;
    if (this.#owedMs < holdMs) return 0;
    this.#owedMs = 0;
    return holdMs;
  }
}
