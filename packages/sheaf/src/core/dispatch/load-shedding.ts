import type { BatchRecord } from "../../policies/policy.ts";
import type { Admission } from "../queue/admission.ts";
import type { Settlement } from "../queue/settlement.ts";
import { queueBound } from "../observe/expected-latency.ts";
import type { Group } from "../queue/group.ts";
import type { BatchCost } from "../observe/weighed-cost.ts";
import type { Settings } from "../contract/settings.ts";

/** Applies deadlines and learned run times: which calls to drop, how long to hold, how many may wait. */
export class LoadShedding<In, Out> {
  readonly #settings: Settings<In, Out>;
  readonly #calls: Settlement<In>;
  readonly #admission: Admission<In, Out>;
  readonly #cost: BatchCost;
  /** Recent measured ÷ expected, at most 1. */
  #pace = 1;

  constructor(settings: Settings<In, Out>, calls: Settlement<In>, admission: Admission<In, Out>, cost: BatchCost) {
    this.#cost = cost;
    this.#settings = settings;
    this.#calls = calls;
    this.#admission = admission;
  }

  /** Feeds the cost model with the batch, and compares the two. */
  observe({ size, runMs, outcome, weights = { sum: size, heaviest: 1 } }: BatchRecord): void {
    if (outcome === "error") return;
    const expectedMs = this.#cost.observe(size, runMs, weights);
    // When all else is dropped, only small batches are left to show that large ones are fast again.
    if (expectedMs > 0) this.#pace += 0.3 * (Math.min(1.5, runMs / expectedMs) - this.#pace);
    const { maxQueueSize, timeoutMs } = this.#settings;
    if (maxQueueSize !== "auto") return;
    const bound = queueBound(this.#cost, this.#settings, timeoutMs!);
    if (bound > 0) this.#admission.maxQueueSize = bound;
  }

  /** A run is unlikely to take this many times its expected time: 1.5 mean deviations more; 0 before 4 batches. */
  get caution(): number {
    const { batches, noise } = this.#cost;
    return batches < 4 ? 0 : (1 + 1.5 * noise) * Math.min(1, this.#pace);
  }

  /**
   * Drops waiting calls that the next batch would answer after their deadline, all but the last of the group, and says
   * whether there were any. Running items that will be late anyway would make the next ones late too: under overload no call would
   * be in time.
   */
  shed(group: Group<In>, nowMs: number): boolean {
    const { cancellation } = this.#calls;
    if (cancellation.nextDeadlineMs === Infinity) return false;
    const { waiting } = group;
    const { perWeightMs } = this.#cost;
    const bySizeMs = perWeightMs > 0 ? 0 : this.caution * this.#cost.at(Math.min(waiting, this.#settings.maxBatchSize));
    if (perWeightMs === 0 && cancellation.nextDeadlineMs >= nowMs + bySizeMs) return false;
    group.everyChunk((chunk) => {
      // By weight, only items that would be late even alone: the next batch is composed so that no other is.
      const likelyMs = (weight: number): number =>
        perWeightMs > 0 ? this.caution * this.#cost.of(1, weight, weight) : bySizeMs;
      cancellation.eachLate(chunk, nowMs + likelyMs(chunk.heaviest), (index) => {
        const ownMs = likelyMs(chunk.weights?.[index] ?? 1);
        if (group.waiting === 1 || nowMs + ownMs < chunk.deadlinesMs![index]!) return false;
        this.#calls.expired(chunk, index, ownMs);
        return true;
      });
    });
    return group.waiting < waiting;
  }

  /** When a held batch that takes `runMs` must go to meet its first deadline; a timer may be a millisecond late. */
  lastChanceAtMs(group: Group<In>, runMs: number): number {
    const likelyMs = this.caution * runMs;
    return likelyMs > 0 ? group.earliestDeadlineMs() - likelyMs - 1 : Infinity;
  }
}
