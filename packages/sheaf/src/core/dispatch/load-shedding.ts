import type { BatchRecord } from "../../policies/policy.ts";
import type { Admission } from "../queue/admission.ts";
import type { Settlement } from "../queue/settlement.ts";
import { queueBound } from "../observe/expected-latency.ts";
import type { Group } from "../queue/group.ts";
import type { LearnedCost } from "../observe/learned-cost.ts";
import type { Settings } from "../contract/settings.ts";

/** Applies deadlines and learned run times: which calls to drop, how long to hold, how many may wait. */
export class LoadShedding<In, Out> {
  readonly #settings: Settings<In, Out>;
  readonly #calls: Settlement<In>;
  readonly #admission: Admission<In, Out>;
  readonly #cost: LearnedCost;
  /** Recent measured ÷ expected, at most 1. */
  #pace = 1;

  constructor(settings: Settings<In, Out>, calls: Settlement<In>, admission: Admission<In, Out>, cost: LearnedCost) {
    this.#cost = cost;
    this.#settings = settings;
    this.#calls = calls;
    this.#admission = admission;
  }

  /** Feeds the cost model with the batch, and compares the two. */
  observe({ size, runMs, outcome }: BatchRecord): void {
    if (outcome === "error") return;
    const expectedMs = this.#cost.observe(size, runMs);
    // When all else is dropped, only small batches are left to show that large ones are fast again.
    if (expectedMs > 0) this.#pace += 0.3 * (Math.min(1.5, runMs / expectedMs) - this.#pace);
    const { maxQueueSize, timeoutMs } = this.#settings;
    if (maxQueueSize !== "auto") return;
    const bound = queueBound(this.#cost, this.#settings, timeoutMs!);
    if (bound > 0) this.#admission.maxQueueSize = bound;
  }

  /**
   * Drops waiting calls whose batch would end after their deadline, all but the last of the group, and says whether there
   * were any. Running what will be late anyway would make the next ones late too: under overload no call would be in
   * time.
   */
  shed(group: Group<In>, nowMs: number): boolean {
    const { cancellation } = this.#calls;
    if (cancellation.nextDeadlineMs === Infinity) return false;
    const { waiting } = group;
    const likelyMs = this.#likelyMs(Math.min(waiting, this.#settings.maxBatchSize));
    if (cancellation.nextDeadlineMs >= nowMs + likelyMs) return false;
    group.everyChunk((chunk) =>
      cancellation.eachLate(
        chunk,
        nowMs + likelyMs,
        (index) => group.waiting > 1 && this.#calls.expired(chunk, index, likelyMs),
      ),
    );
    return group.waiting < waiting;
  }

  /** When a held batch must go to meet its first deadline; a timer may be a millisecond late. */
  lastChanceAtMs(group: Group<In>, size: number): number {
    const likelyMs = this.#likelyMs(size);
    return likelyMs > 0 ? group.earliestDeadlineMs() - likelyMs - 1 : Infinity;
  }

  /**
   * A run time that a batch of this size is unlikely to exceed, `s(size)` + 1.5 mean deviations; 0 before 4 batches.
   */
  #likelyMs(size: number): number {
    const { batches, noise } = this.#cost;
    return batches < 4 ? 0 : this.#cost.at(size) * (1 + 1.5 * noise) * Math.min(1, this.#pace);
  }
}
