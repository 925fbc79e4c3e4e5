import type { BatcherCapacity, BatcherPending } from "../../../core/contract/batcher.ts";
import type { Priority } from "../../../core/contract/options.ts";
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

interface Room {
  readonly live: number;
  readonly bulk: number;
}

/**
 * How much a worker takes from the queue, and when the batcher gets it: no more than its free slots can run, so that
 * items wait where every worker can take them.
 */
export class FlowControl {
  readonly #parts: FlowControlParts;
  /** Items taken and not yet passed to the batcher. */
  #arrived: Delivery[] = [];
  /** Items that waited behind the last one taken, of the live lanes and of bulk. */
  readonly #backlog: { live: number; bulk: number } = { live: 0, bulk: 0 };
  /** More items were requested for the batch that is being collected. */
  #hasToppedUp = false;

  constructor(parts: FlowControlParts) {
    this.#parts = parts;
  }

  add(delivery: Delivery): void {
    this.#arrived.push(delivery);
  }

  /** Notes how many items wait in its lane behind the one that has just arrived. */
  sawBacklog(lane: Priority, items: number): void {
    this.#backlog[lane === "bulk" ? "bulk" : "live"] = items;
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
    const { poisonMode, pulls, timers } = this.#parts;
    const state = this.#parts.state();
    if (state === "waiting" || pulls.isCollecting) return;
    if (state === "handing back") {
      for (const delivery of this.empty()) this.#parts.handBack(delivery);
      return;
    }
    const room = this.#room();
    const live = this.#urgent();
    const bulk = this.#arrived.length - live;
    if (live + bulk > 0 && !this.#hasToppedUp && this.#couldTopUp(room)) {
      this.#hasToppedUp = true;
      pulls.ask(room.live - live, room.bulk - bulk);
      // The answer comes within a round trip; otherwise the items that are here go without it.
      timers.after("release", toppingUpMs, () => this.#release());
    } else if (!this.#release()) {
      const most = poisonMode.isOn ? 1 : Infinity;
      pulls.ask(live > 0 ? 0 : Math.min(most, room.live), bulk > 0 ? 0 : Math.min(most, room.bulk));
    }
  }

  /**
   * How many more live items there may be here, and how many bulk ones. The batcher gives each lane its turns, among the items that
   * it has: bulk that waits in it takes the next slot, unless live items are there by then.
   */
  #room(): Room {
    const { maxBatchSize, concurrency } = this.#parts.limits;
    const { queued, bulk, inFlight } = this.#parts.pending();
    const live = queued - bulk;
    const freeSlots = concurrency - inFlight;
    const places = Math.max(1, freeSlots) * maxBatchSize;
    const room = { live: Math.max(0, (bulk > 0 ? 2 : 1) * places - live), bulk: Math.max(0, places - bulk) };
    if (freeSlots > 0) return room;
    // Prefetched, a whole batch saves the next free slot a round trip; a part of one is not sealed before a slot is free.
    const urgent = this.#urgent();
    const hasLiveBatch = live === 0 && urgent + this.#backlog.live >= maxBatchSize;
    const hasBulkBatch = this.#arrived.length - urgent + this.#backlog.bulk >= maxBatchSize;
    const feedsBulk = bulk > 0 ? this.#backlog.bulk > 0 : live > 0 || hasBulkBatch;
    return { live: bulk > 0 || hasLiveBatch ? room.live : 0, bulk: feedsBulk ? room.bulk : 0 };
  }

  /** Whether more waits for the batch being collected, or bulk is here and the lane above has not been asked. */
  #couldTopUp(room: Room): boolean {
    const urgent = this.#urgent();
    const bulk = this.#arrived.length - urgent;
    if ((this.#backlog.live > 0 && urgent < room.live) || (this.#backlog.bulk > 0 && bulk < room.bulk)) return true;
    return bulk > 0 && urgent < room.live && !this.#parts.pulls.isOpen("interactive");
  }

  #urgent(): number {
    return this.#arrived.reduce((count, { lane }) => count + (lane === "bulk" ? 0 : 1), 0);
  }

  /** Passes on the arrived items that the batcher can have now, the highest lane first; false without any. */
  #release(): boolean {
    const room = this.#room();
    const { queued, bulk, inFlight } = this.#parts.pending();
    const urgent = this.#urgent();
    this.#arrived.sort((a, b) => lanes.indexOf(a.lane) - lanes.indexOf(b.lane));
    const isAhead = inFlight >= this.#parts.limits.concurrency;
    const live = isAhead && bulk === 0 && urgent < room.live ? 0 : Math.min(urgent, room.live);
    const going = new Set([
      ...this.#arrived.slice(0, live),
      ...this.#arrived.slice(urgent, urgent + (isAhead && queued + live === 0 ? 0 : room.bulk)),
    ]);
    if (going.size === 0) return false;
    this.#parts.timers.cancel("release");
    this.#hasToppedUp = false;
    this.#arrived = this.#arrived.filter((delivery) => !going.has(delivery));
    for (const delivery of going) this.#parts.run(delivery);
    this.#parts.timers.after("turn", turnMs, () => this.advance());
    return true;
  }
}
