import type { Chunk, KeyOrder, Lane, Slot } from "../queue/chunk.ts";

/** The state of one order key: who waits, in order, and which batch holds it. Forgotten when both are empty. */
export class OrderKey<In> implements KeyOrder<In> {
  readonly key: unknown;
  /** Its waiting items in order of arrival, linked: one that leaves costs the same wherever it stands. */
  first: Slot<In> | undefined = undefined;
  #last: Slot<In> | undefined = undefined;
  /** The batch that runs items of this key; nobody else may until it ends. */
  holder: Chunk<In> | undefined = undefined;
  /** The lowest lane in which an item of this key may wait. */
  lowestLane: Lane = 0;
  /** The choice of a batch that took items of this key last, and the item that it must take next. */
  #choice = 0;
  #next: Slot<In> | undefined = undefined;

  constructor(key: unknown) {
    this.key = key;
  }

  /** Whether the slot may go in the batch that `choice` is choosing; if so, the one behind it is next. */
  admits(slot: Slot<In>, choice: number): boolean {
    if (this.holder !== undefined) return false;
    if (slot !== (this.#choice === choice ? this.#next : this.first)) return false;
    this.#choice = choice;
    this.#next = slot.behind;
    return true;
  }

  add(slot: Slot<In>): void {
    slot.ahead = this.#last;
    if (this.#last === undefined) this.first = slot;
    else this.#last.behind = slot;
    this.#last = slot;
  }

  remove(slot: Slot<In>): void {
    const { ahead, behind } = slot;
    if (ahead === undefined) this.first = behind;
    else ahead.behind = behind;
    if (behind === undefined) this.#last = ahead;
    else behind.ahead = ahead;
    slot.ahead = slot.behind = undefined;
  }
}

/** All order keys that somebody waits for or runs. */
export class OrderKeys<In> {
  readonly #keys: Map<unknown, OrderKey<In>> = new Map();
  #places = 0;

  get(key: unknown): OrderKey<In> | undefined {
    return this.#keys.get(key);
  }

  /** The place of an item that enters a line now. */
  nextPlace(): number {
    return ++this.#places;
  }

  enter(slot: Slot<In>, key: unknown, lane: Lane): void {
    let order = this.#keys.get(key);
    if (order === undefined) this.#keys.set(key, (order = new OrderKey(key)));
    if (order.first === undefined || lane > order.lowestLane) order.lowestLane = lane;
    order.add(slot);
    slot.order = order;
  }

  /** The slot is about to leave the queue without running. */
  leaves(slot: Slot<In>): void {
    const order = slot.order!;
    const isFirst = order.first === slot;
    slot.chunk.line!.aside?.withdraw(slot);
    order.remove(slot);
    if (isFirst) this.#passOn(order);
  }

  taken(slot: Slot<In>, batch: Chunk<In>): void {
    const order = slot.order!;
    order.remove(slot);
    order.holder = batch;
  }

  /** The run of the batch has ended, whatever became of its callers. */
  release(batch: Chunk<In>): void {
    for (const slot of batch.slots ?? []) {
      if (slot?.order?.holder !== batch) continue;
      slot.order.holder = undefined;
      this.#passOn(slot.order);
    }
  }

  /** Another item is the first of its key, or nobody holds the key any more. */
  #passOn(order: KeyOrder<In>): void {
    const { first, holder } = order;
    if (holder !== undefined) return;
    if (first === undefined) this.#keys.delete(order.key);
    else if (first.chunk.row === first.chunk.line!.aside) first.chunk.line!.aside!.offer(first);
  }
}
