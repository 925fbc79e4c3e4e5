import type { Chunk } from "./chunk.ts";
import type { Lane } from "./line.ts";
import type { Slot } from "./slot.ts";

/** The state of one order key: who waits, in order, and which batch holds it. Forgotten when both are empty. */
export class OrderKey<In> {
  readonly key: unknown;
  /** In order of arrival. A Set: removal of a withdrawn call is O(1), iteration keeps the order. */
  readonly waiting: Set<Slot<In>> = new Set();
  /** The batch that runs items of this key; nobody else may until it ends. */
  holder: Chunk<In> | undefined = undefined;
  /** While a batch is being chosen: what must be taken next of this key. */
  following: Iterator<Slot<In>> | undefined = undefined;
  next: Slot<In> | undefined = undefined;
  /** The lowest lane in which an item of this key may wait. */
  lowestLane: Lane = 0;

  constructor(key: unknown) {
    this.key = key;
  }

  /** Whether the slot may go in the batch being chosen, and if so moves on to the one behind it. */
  admits(slot: Slot<In>): boolean {
    if (this.holder !== undefined) return false;
    if (this.following === undefined) {
      this.following = this.waiting.values();
      this.next = this.following.next().value;
    }
    if (this.next !== slot) return false;
    this.next = this.following.next().value;
    return true;
  }
}

/** All order keys that somebody waits for or runs. */
export class OrderKeys<In> {
  readonly #keys: Map<unknown, OrderKey<In>> = new Map();

  get(key: unknown): OrderKey<In> | undefined {
    return this.#keys.get(key);
  }

  enter(slot: Slot<In>, key: unknown, lane: Lane): void {
    let order = this.#keys.get(key);
    if (order === undefined) this.#keys.set(key, (order = new OrderKey(key)));
    if (order.waiting.size === 0 || lane > order.lowestLane) order.lowestLane = lane;
    order.waiting.add(slot);
    slot.order = order;
  }

  /** The slot left the queue without running. */
  left(slot: Slot<In>): void {
    const order = slot.order!;
    order.waiting.delete(slot);
    this.#forgetIfIdle(order);
  }

  taken(slot: Slot<In>, batch: Chunk<In>): void {
    const order = slot.order!;
    order.waiting.delete(slot);
    order.holder = batch;
  }

  /** The run of the batch has ended, whatever became of its callers. */
  release(batch: Chunk<In>): void {
    for (const slot of batch.slots ?? []) {
      if (slot?.order?.holder !== batch) continue;
      slot.order.holder = undefined;
      this.#forgetIfIdle(slot.order);
    }
  }

  #forgetIfIdle(order: OrderKey<In>): void {
    if (order.waiting.size === 0 && order.holder === undefined) this.#keys.delete(order.key);
  }
}
