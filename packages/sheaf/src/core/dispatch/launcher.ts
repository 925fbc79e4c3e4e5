import type { Settings } from "../contract/settings.ts";
import type { Demand } from "../measure/demand.ts";
import type { Group } from "../queue/group.ts";
import type { Queue } from "../queue/queue.ts";
import type { Decisions } from "./decision.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { sizeReasonOf, type NextBatch } from "./next-batch.ts";
import type { Throttle } from "./rate-limit.ts";

/** Result of `tryGroup`: a batch has started. */
export const started = -1;

/** Starts the next batch of a group where a slot, the rate limit and the policy let it go. */
export class Launcher<In, Out> {
  readonly #settings: Settings<In, Out>;
  readonly #queue: Queue<In>;
  readonly #next: NextBatch<In>;
  readonly #decisions: Decisions<In, Out>;
  readonly #dispatcher: Dispatcher<In, Out>;
  readonly #throttle: Throttle;
  readonly #demand: Demand;

  constructor(
    settings: Settings<In, Out>,
    queue: Queue<In>,
    next: NextBatch<In>,
    decisions: Decisions<In, Out>,
    dispatcher: Dispatcher<In, Out>,
    throttle: Throttle,
    demand: Demand,
  ) {
    this.#settings = settings;
    this.#queue = queue;
    this.#next = next;
    this.#decisions = decisions;
    this.#dispatcher = dispatcher;
    this.#throttle = throttle;
    this.#demand = demand;
  }

  /**
   * With every slot busy: from when on a batch may go ahead to one of them, to hide the time that it takes to wake up for the
   * next one. `-Infinity` for now, `Infinity` until something changes.
   */
  aheadAtMs(): number {
    const { prefetch } = this.#settings;
    if (prefetch === 0 || this.#queue.size < this.#decisions.aheadSize || !this.#dispatcher.takesAhead) return Infinity;
    // Late: a tenant that comes while a batch waits at a busy slot would wait for a whole run more.
    return this.#queue.tenants === undefined ? -Infinity : this.#decisions.aheadAtMs();
  }

  /** Starts the next batch of a group, or says when to ask again (`Infinity`: when something changes). */
  tryGroup(group: Group<In>, nowMs: number): number {
    const { freeSlots } = this.#dispatcher;
    const isAhead = freeSlots <= 0;
    const dropped = !isAhead && this.#decisions.shed(group, nowMs);
    const costs = this.#decisions.costs(nowMs, freeSlots);
    const { seat } = this.#throttle;
    const room = seat?.room(nowMs);
    if (room !== undefined) this.#next.boundWeight(room.weight);
    const preview = this.#next.preview(group, nowMs, costs);
    if (preview.waiting === 0) return Infinity;
    const capacity = Math.min(preview.capacity, room?.items ?? Infinity, this.#queue.maxSize);
    preview.capacity = capacity;
    // With fewer items waiting than the policy wants, the batch goes on filling until a slot is free.
    const enough = isAhead ? Math.min(capacity, this.#decisions.aheadSize) : 1;
    if (isAhead && (preview.isAlone || preview.waiting < enough)) return Infinity;
    const readyAtMs = seat?.readyAtMs(nowMs, Math.min(preview.waiting, capacity), preview.weight);
    if (readyAtMs !== undefined && readyAtMs > nowMs) return readyAtMs;
    const { version } = this.#queue;
    const decision = this.#decisions.decide(group, preview, nowMs, freeSlots, dropped);
    // A policy has called the batcher: the limit was asked about the items that waited before.
    if (seat !== undefined && this.#queue.version !== version) return nowMs;
    if (isAhead && !("run" in decision)) return Infinity;
    const goes = "run" in decision;
    // An item that runs alone is never held, not even behind others that are.
    const takesAlone = !goes && this.#queue.alone > 0;
    const run = goes ? Math.min(decision.run, capacity) : 1;
    const batch = goes || takesAlone ? this.#next.take(group, run, nowMs, costs, takesAlone) : undefined;
    if (batch === undefined) return goes ? Infinity : decision.askAgainAtMs;
    const weight = weightOf(batch.weights, batch.count, this.#settings.batchWeight === "padded");
    seat?.spend(nowMs, batch.count, weight);
    group.held = false;
    const firstDeadlineAtMs = batch.deadlinesAtMs?.[0];
    if (firstDeadlineAtMs !== undefined) this.#demand.due(firstDeadlineAtMs - batch.arrivedAtMs(0));
    const taken = { size: batch.count, asked: run, capacity, leftInGroup: group.waiting, left: this.#queue.size };
    const sizeReason = takesAlone ? "alone" : sizeReasonOf(taken, preview, this.#settings.maxBatchSize);
    this.#dispatcher.start(batch, goes ? decision.reason : "full", sizeReason, group.key, weight, nowMs);
    return started;
  }
}

function weightOf(weights: readonly number[] | undefined, count: number, padded: boolean): number {
  if (weights === undefined) return count;
  return padded
    ? count * weights.reduce((heaviest, weight) => Math.max(heaviest, weight), 0)
    : weights.reduce((sum, weight) => sum + weight, 0);
}
