import type { Queue } from "../queue/queue.ts";
import type { Settlement } from "../queue/settlement.ts";
import { queueBound } from "../measure/expected-latency.ts";
import type { RunFacts } from "./run.ts";
import type { Group } from "../queue/group.ts";
import type { BatchCost } from "../measure/learned-cost.ts";
import { choosesByWeight, type Settings } from "../contract/settings.ts";

/**
 * Up to this mean deviation, one that scatters more is given up earlier. Beyond it items differ, or the machine is crowded:
 * the expected time of a batch says little of the next one, and most items that caution gives up would be in time.
 */
const steadyNoise = 1 / 15;

/** Applies deadlines and learned run times: which calls to drop, how long to hold, how many may wait. */
export class LoadShedding<In, Out> {
  readonly #settings: Settings<In, Out>;
  readonly #calls: Settlement<In>;
  readonly #queue: Queue<In>;
  readonly #cost: BatchCost;
  /** Recent measured ÷ expected, at most 1. */
  #pace = 1;

  constructor(settings: Settings<In, Out>, calls: Settlement<In>, queue: Queue<In>, cost: BatchCost) {
    this.#cost = cost;
    this.#settings = settings;
    this.#calls = calls;
    this.#queue = queue;
  }

  /** Feeds the cost model with a run, and compares the two. */
  learn({ size, runMs, outcome, inFlight, weights = { sum: size, heaviest: 1 } }: RunFacts): void {
    if (outcome !== "ok") return;
    const expectedMs = this.#cost.observe(size, runMs, weights, inFlight);
    // When all else is dropped, only small batches are left to show that large ones are fast again.
    if (expectedMs > 0) this.#pace += 0.3 * (Math.min(1.5, runMs / expectedMs) - this.#pace);
    const { maxQueueSize, timeoutMs } = this.#settings;
    if (maxQueueSize !== "auto") return;
    const bound = queueBound(this.#cost, this.#settings, timeoutMs!);
    if (bound > 0) this.#queue.maxSize = bound;
  }

  /** A run is unlikely to take this many times its expected time: 1.5 mean deviations more; 0 before 4 batches. */
  get caution(): number {
    return this.#timesExpected(this.#cost.noise);
  }

  #timesExpected(deviations: number): number {
    return this.#cost.batches < 4 ? 0 : Math.max(0, 1 + 1.5 * deviations) * Math.min(1, this.#pace);
  }

  /**
   * Drops waiting calls that the next batch would answer after their deadline, all but the last of the group, and says
   * whether there were any. Running items that will be late anyway would make the next ones late too: under overload no call would
   * be in time.
   */
  shed(group: Group<In>, nowMs: number): boolean {
    const { waiting } = group;
    if (choosesByWeight(this.#settings, this.#cost)) this.#shedByWeight(group, nowMs);
    else this.#shedBySize(group, nowMs);
    return group.waiting < waiting;
  }

  /** Only items that would be late even alone: the next batch is composed so that no other is. */
  #shedByWeight(group: Group<In>, nowMs: number): void {
    const likelyMs = (weight: number): number => this.caution * this.#cost.of(1, weight, weight);
    group.everyChunk((chunk) => {
      this.#queue.cancellation.eachLate(chunk, nowMs + likelyMs(chunk.heaviest), (index) => {
        const ownMs = likelyMs(chunk.weights?.[index] ?? 1);
        if (group.waiting === 1 || nowMs + ownMs < chunk.deadlinesAtMs![index]!) return false;
        this.#calls.expired(chunk, index, ownMs);
        return true;
      });
    });
  }

  /** All items but the most that one batch answers in time: those with the latest deadlines, and of one deadline the first. */
  #shedBySize(group: Group<In>, nowMs: number): void {
    const { cancellation } = this.#queue;
    const { noise } = this.#cost;
    const caution = this.#timesExpected(Math.min(noise, 2 * steadyNoise - noise));
    const runMs = (size: number): number => caution * this.#cost.at(Math.min(size, this.#settings.maxBatchSize));
    const allMs = runMs(group.waiting);
    if (cancellation.nextDeadlineAtMs >= nowMs + allMs) return;
    const lateAtMs: number[] = [];
    group.everyChunk((chunk) =>
      cancellation.eachLate(chunk, nowMs + allMs, (index) => {
        lateAtMs.push(chunk.deadlinesAtMs![index]!);
        return false;
      }),
    );
    lateAtMs.sort((a, b) => b - a);
    // Without the others the batch is smaller, and over earlier.
    const others = group.waiting - lateAtMs.length;
    let kept = 0;
    while (kept < lateAtMs.length && nowMs + runMs(others + kept + 1) < lateAtMs[kept]!) kept++;
    const droppedAtMs = lateAtMs[kept];
    if (droppedAtMs === undefined) return;
    const likelyMs = runMs(others + kept + 1);
    let sameKept = kept - lateAtMs.indexOf(droppedAtMs);
    group.everyChunk((chunk) =>
      cancellation.eachLate(chunk, droppedAtMs, (index) => {
        if (group.waiting === 1 || (droppedAtMs === chunk.deadlinesAtMs![index] && sameKept-- > 0)) return false;
        this.#calls.expired(chunk, index, likelyMs);
        return true;
      }),
    );
  }

  /** The first deadline of the group's next items, or a moment before it. */
  firstDeadlineAtMs(group: Group<In>): number {
    return this.#queue.cancellation.nextDeadlineAtMs === Infinity ? Infinity : group.firstDeadlineAtMs();
  }

  /** When a held batch that takes `runMs` must go to meet this deadline; a timer may be a millisecond late. */
  lastChanceAtMs(deadlineAtMs: number, runMs: number): number {
    const likelyMs = this.caution * runMs;
    return likelyMs > 0 ? deadlineAtMs - likelyMs - 1 : Infinity;
  }
}
