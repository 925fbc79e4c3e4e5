import type { BatchRecord } from "../policies/policy.ts";
import type { Admission } from "./admission.ts";
import type { Calls } from "./calls.ts";
import { Forecast } from "./forecast.ts";
import type { Group } from "./group.ts";
import { earliestDeadlineMs, everyLate } from "./late.ts";
import type { Settings } from "./settings.ts";

/** What follows from deadlines and learned run times: who is dropped, how long a hold may last, how many may wait. */
export class Foresight<In, Out> {
  readonly #settings: Settings<In, Out>;
  readonly #calls: Calls<In>;
  readonly #admission: Admission<In, Out>;
  /** From the first deadline on. */
  #forecast: Forecast | undefined = undefined;

  constructor(settings: Settings<In, Out>, calls: Calls<In>, admission: Admission<In, Out>) {
    this.#settings = settings;
    this.#calls = calls;
    this.#admission = admission;
  }

  observe(record: BatchRecord): void {
    if (this.#calls.watch.nextDeadlineMs < Infinity) this.#forecast ??= new Forecast();
    if (this.#forecast === undefined) return;
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
    if (this.#forecast === undefined) return false;
    const likelyMs = this.#forecast.likelyMs(Math.min(group.waiting, this.#settings.maxBatchSize));
    if (this.#calls.watch.nextDeadlineMs >= nowMs + likelyMs) return false;
    const before = group.waiting;
    everyLate(group, nowMs + likelyMs, (chunk, index) => this.#calls.foreseen(chunk, index, likelyMs));
    return group.waiting < before;
  }

  /** When a held batch must go for its first deadline to be met; a timer may be a millisecond late. */
  lastChanceAtMs(group: Group<In>, size: number): number {
    const likelyMs = this.#forecast?.likelyMs(size) ?? 0;
    return likelyMs > 0 ? earliestDeadlineMs(group) - likelyMs - 1 : Infinity;
  }
}
