import type { BatchRecord, QueueView } from "../policy.ts";
import type { ArrivalRate } from "./arrival-rate.ts";
import { delayGain, leastRunMs, moreItems, runsWaited, shortestHoldMs } from "./constants.ts";

/**
 * Rule *cores*: where cores are short, each batch costs all other work its fixed part. So the next one is held for others to
 * join it, at most as long as a run of one item takes with the way to its worker and back.
 */
export class CoresRule {
  /** The way to the worker and back, as far as it is no longer than the run itself. */
  #delayMs = 0;
  /** Holds shorter than a timer add up until they make one. */
  #owedMs = 0;
  /** End of the hold of the next batch; undefined until it is decided. */
  #endsAtMs: number | undefined;

  observe({ tookMs, runMs, outcome }: BatchRecord): void {
    // A batch that went ahead to a busy slot waited for the run before it as well.
    if (outcome === "ok") this.#delayMs += delayGain * (Math.min(tookMs - runMs, runMs) - this.#delayMs);
  }

  dispatched(): void {
    this.#endsAtMs = undefined;
  }

  /** @param share the items that a slot can expect: with as many here, no other is worth waiting for */
  until(view: QueueView, share: number, rate: ArrivalRate): number {
    const { nowMs, waiting, coreShortage } = view;
    if (coreShortage <= 0 || waiting >= share) return nowMs;
    return (this.#endsAtMs ??= nowMs + this.#holdMs(view, rate));
  }

  #holdMs({ nowMs, waiting, oldestAtMs, deadlineAtMs, coreShortage, cost }: QueueView, rate: ArrivalRate): number {
    const oneMs = cost.at(1);
    const runMs = oneMs + Math.min(oneMs, this.#delayMs);
    const holdMs = Math.max(shortestHoldMs, coreShortage * runMs);
    if (runMs < leastRunMs || nowMs - oldestAtMs > runsWaited * runMs) return 0;
    if (rate.perMs(nowMs) * holdMs < moreItems * waiting) return 0;
    if (nowMs + holdMs + 2 * cost.at(waiting) > deadlineAtMs) return 0;
    this.#owedMs += coreShortage * runMs;
    if (this.#owedMs < holdMs) return 0;
    this.#owedMs = 0;
    return holdMs;
  }
}
