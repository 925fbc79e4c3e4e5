import type { BatcherCapacity, BatcherPending } from "../../../core/contract/batcher.ts";
import type { PoisonMode } from "./poison-mode.ts";
import type { Delivery } from "./delivery.ts";
import type { Pulls } from "./pulls.ts";
import { lanes } from "../queue/options.ts";
import type { Timers } from "./timers.ts";

/** After a hand-over the batcher gets a turn before more items are requested. */
const turnMs = 1;
const toppingUpMs = 2;

export interface FlowControlParts {
  readonly limits: BatcherCapacity;
  readonly pending: () => BatcherPending;
  readonly poisonMode: PoisonMode;
  readonly timers: Timers;
  readonly pulls: Pulls;
  /** `"waiting"`: not now, because the queue is missing or suspects run. `"handing back"`: nothing can run here. */
  readonly state: () => "taking" | "waiting" | "handing back";
  /** Passes it to the batcher. */
  readonly run: (delivery: Delivery) => void;
  readonly handBack: (delivery: Delivery) => void;
}

/**
 * How much a worker takes from the queue, and when the batcher gets it: no more than its free slots can run, so that
 * items wait where every worker can take them.
 */
export class FlowControl {
  readonly #parts: FlowControlParts;
  /** Items taken and not yet passed to the batcher. */
  #arrived: Delivery[] = [];
  /** Items that waited in the lane behind the last one taken. */
  #backlog = 0;
  /** More items were requested for the batch that is being collected. */
  #hasToppedUp = false;

  constructor(parts: FlowControlParts) {
    this.#parts = parts;
  }

  add(delivery: Delivery): void {
    this.#arrived.push(delivery);
  }

  /** Notes how many items wait behind the one that has just arrived. */
  sawBacklog(items: number): void {
    this.#backlog = items;
  }

  /** Nothing waits or runs here, nor in the queue. */
  get isIdle(): boolean {
    const { queued, inFlight } = this.#parts.pending();
    return this.#arrived.length + queued + inFlight === 0 && this.#parts.pulls.areAllEmpty;
  }

  /** Removes and returns the items that the batcher does not have yet. */
  empty(): Delivery[] {
    return this.#arrived.splice(0);
  }

  /** Something changed: requests items for free slots, or passes on those that have arrived. */
  advance(): void {
    const { limits, poisonMode, pulls, timers } = this.#parts;
    const { maxBatchSize } = limits;
    const state = this.#parts.state();
    if (state === "waiting" || pulls.isCollecting) return;
    if (state === "handing back") {
      for (const delivery of this.empty()) this.#parts.handBack(delivery);
      return;
    }
    const arrived = this.#arrived.length;
    const { queued: waiting, inFlight } = this.#parts.pending();
    const freeSlots = limits.concurrency - inFlight;
    // Prefetched, a whole batch saves the next free slot a round trip; a part of one is not sealed before a slot is
    // free.
    const isAhead = freeSlots <= 0;
    if (isAhead && (waiting > 0 || this.#urgent() + this.#backlog < maxBatchSize)) return;
    const capacity = Math.max(1, freeSlots) * maxBatchSize - waiting;
    if (arrived === 0) {
      if (capacity > 0) pulls.ask(poisonMode.isOn ? 1 : capacity);
    } else if (!this.#hasToppedUp && this.#couldTopUp(capacity)) {
      this.#hasToppedUp = true;
      pulls.ask(capacity - this.#urgent());
      // The answer comes within a round trip; otherwise the items that are here go without it.
      timers.after("release", toppingUpMs, () => {
        if (this.#parts.pending().inFlight < limits.concurrency) this.#release(capacity);
      });
    } else if (!isAhead || this.#urgent() >= capacity) {
      this.#release(capacity);
    }
  }

  /** Whether more waits for the batch being collected, or bulk is here and the lane above has not been asked. */
  #couldTopUp(capacity: number): boolean {
    if (this.#backlog > 0 && this.#arrived.length < capacity) return true;
    const urgent = this.#urgent();
    return urgent < this.#arrived.length && urgent < capacity && !this.#parts.pulls.isOpen("interactive");
  }

  #urgent(): number {
    return this.#arrived.reduce((count, { lane }) => count + (lane === "bulk" ? 0 : 1), 0);
  }

  /** Passes on arrived items, as many as free slots can run, the highest lane first. */
  #release(capacity: number): void {
    this.#parts.timers.cancel("release");
    this.#hasToppedUp = false;
    if (this.#arrived.length > capacity) this.#arrived.sort((a, b) => lanes.indexOf(a.lane) - lanes.indexOf(b.lane));
    for (const delivery of this.#arrived.splice(0, capacity)) this.#parts.run(delivery);
    this.#parts.timers.after("turn", turnMs, () => this.advance());
  }
}
