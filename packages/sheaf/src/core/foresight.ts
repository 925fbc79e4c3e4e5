import type { BatchRecord } from "../policies/policy.ts";
import type { Admission } from "./admission.ts";
import type { Calls } from "./calls.ts";
import { Forecast } from "./forecast.ts";
import type { Group } from "./group.ts";
import type { LearnedCost } from "./learned-cost.ts";
import { earliestDeadlineMs, everyLate } from "./late.ts";
import type { Settings } from "./settings.ts";

/** What follows from deadlines and learned run times: who is dropped, how long a hold may last, how many may wait. */
export class Foresight<In, Out> {
  readonly #settings: Settings<In, Out>;
  readonly #calls: Calls<In>;
  readonly #admission: Admission<In, Out>;
  readonly #forecast: Forecast;

  constructor(settings: Settings<In, Out>, calls: Calls<In>, admission: Admission<In, Out>, cost: LearnedCost) {
    this.#forecast = new Forecast(cost);
    this.#settings = settings;
    this.#calls = calls;
    this.#admission = admission;
  }

  observe(record: BatchRecord): void {
    this.#forecast.observe(record);
    const { maxQueueSize, timeoutMs, concurrency, maxBatchSize } = this.#settings;
    if (maxQueueSize !== "auto" || timeoutMs === undefined) return;
    const bound = this.#forecast.queueBound(timeoutMs, concurrency, maxBatchSize);
    if (bound !== undefined) this.#admission.maxQueueSize = bound;
  }

  /**
   * Drops waiting calls whose batch would end after their deadline, and says whether there were any. Running what will
   * be late anyway would make the next ones late too: under overload nobody would be in time.
   */
  dropHopeless(group: Group<In>, nowMs: number): boolean {
    if (this.#calls.watch.nextDeadlineMs === Infinity) return false;
    const likelyMs = this.#forecast.likelyMs(Math.min(group.waiting, this.#settings.maxBatchSize));
    if (this.#calls.watch.nextDeadlineMs >= nowMs + likelyMs) return false;
    const before = group.waiting;
    everyLate(group, nowMs + likelyMs, (chunk, index) => this.#calls.foreseen(chunk, index, likelyMs));
    return group.waiting < before;
  }

  /** When a held batch must go for its first deadline to be met; a timer may be a millisecond late. */
  lastChanceAtMs(group: Group<In>, size: number): number {
    if (this.#calls.watch.nextDeadlineMs === Infinity) return Infinity;
    const likelyMs = this.#forecast.likelyMs(size);
    return likelyMs > 0 ? earliestDeadlineMs(group) - likelyMs - 1 : Infinity;
  }
}
