import { ChunkList, type Chunk, type ItemRef } from "./chunk.ts";
import type { Tenants } from "./tenants.ts";
import type { Lane } from "../contract/settings.ts";
import { type AbortSignalLike, consumerOf } from "../runtime/runtime.ts";

/**
 * The state of one order key: the waiting items, in order, and the batch that holds it. Forgotten when it has neither.
 */
export class OrderKey<In> {
  readonly key: unknown;
  /** Its waiting items in order of arrival, linked: one that leaves costs the same wherever it is. */
  first: ItemRef<In> | undefined;
  #last: ItemRef<In> | undefined;
  /** The batch that runs items of this key; no other batch may until it ends. */
  holder: Chunk<In> | undefined;
  /** The lowest lane in which an item of this key may wait. */
  lowestLane: Lane = 0;
  /** The choice that took items of this key last, and the item that it must take next. */
  #choice = 0;
  #next: ItemRef<In> | undefined;

  constructor(key: unknown) {
    this.key = key;
  }

  /** Whether the item may go in the batch that `choice` is choosing; if so, its successor is next. */
  admits(ref: ItemRef<In>, choice: number): boolean {
    if (this.holder !== undefined) return false;
    if (ref !== (this.#choice === choice ? this.#next : this.first)) return false;
    this.#choice = choice;
    this.#next = ref.next;
    return true;
  }

  add(ref: ItemRef<In>): void {
    ref.previous = this.#last;
    if (this.#last === undefined) this.first = ref;
    else this.#last.next = ref;
    this.#last = ref;
  }

  /** The refs of its waiting items, in order. */
  waiting(): ItemRef<In>[] {
    const refs: ItemRef<In>[] = [];
    for (let ref = this.first; ref !== undefined; ref = ref.next) refs.push(ref);
    return refs;
  }

  addFirst(ref: ItemRef<In>): void {
    ref.next = this.first;
    if (this.first === undefined) this.#last = ref;
    else this.first.previous = ref;
    this.first = ref;
  }

  remove(ref: ItemRef<In>): void {
    const { previous, next } = ref;
    if (previous === undefined) this.first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    ref.previous = ref.next = undefined;
  }
}

/** Whether a consumer's later calls of the key stay behind one that failed with this error; notes it. */
export function stopsKey(
  signal: AbortSignalLike | undefined,
  key: unknown,
  error: unknown,
  place: number = Infinity,
): signal is AbortSignalLike {
  const consumer = key === undefined ? undefined : signal?.[consumerOf];
  if (consumer?.stops(error) !== true) return false;
  consumer.stopped.set(key, { error, place: Math.min(place, consumer.stopped.get(key)?.place ?? Infinity) });
  return true;
}

/** What a call is rejected with that comes after one with which its key stopped; undefined where it may go on. */
export function behind(signal: AbortSignalLike | undefined, key: unknown, place: number = Infinity): Error | undefined {
  const consumer = signal?.[consumerOf];
  const stop = consumer?.stopped.get(key);
  return stop !== undefined && (place > stop.place || place === Infinity) ? consumer!.behind(stop.error) : undefined;
}

/** All order keys with waiting or running items. */
export class OrderKeys<In> {
  readonly #keys: Map<unknown, OrderKey<In>> = new Map();
  #places = 0;

  get(key: unknown): OrderKey<In> | undefined {
    return this.#keys.get(key);
  }

  /** The place of an item that enters the queue now. */
  nextPlace(): number {
    return ++this.#places;
  }

  enter(ref: ItemRef<In>, key: unknown, lane: Lane): void {
    let order = this.#keys.get(key);
    if (order === undefined) this.#keys.set(key, (order = new OrderKey(key)));
    if (order.first === undefined || lane > order.lowestLane) order.lowestLane = lane;
    order.add(ref);
    ref.order = order;
  }

  /** The item is about to leave the queue without running. */
  leaves(ref: ItemRef<In>): void {
    const order = ref.order!;
    const isFirst = order.first === ref;
    ref.chunk.laneQueue!.blocked?.withdraw(ref);
    order.remove(ref);
    if (isFirst) this.#passOn(order);
  }

  taken(ref: ItemRef<In>, batch: Chunk<In>): void {
    const order = ref.order!;
    order.remove(ref);
    order.holder = batch;
  }

  /** A batch did not run: its items that have not settled, by their refs in order, are the first of their keys again. */
  putBack(refs: readonly ItemRef<In>[]): void {
    for (const ref of refs.toReversed()) ref.order?.addFirst(ref);
  }

  /** The run of the batch has ended, with or without its callers. */
  release(batch: Chunk<In>): void {
    for (const ref of batch.refs ?? []) {
      if (ref?.order?.holder !== batch) continue;
      ref.order.holder = undefined;
      this.#passOn(ref.order);
    }
  }

  /** Another item is the first of its key, or the key is free. */
  #passOn(order: OrderKey<In>): void {
    const { first, holder } = order;
    if (holder !== undefined) return;
    if (first === undefined) this.#keys.delete(order.key);
    else if (first.chunk.list === first.chunk.laneQueue!.blocked) first.chunk.laneQueue!.blocked!.offer(first);
  }
}

/**
 * The calls of a lane queue that their order key blocks, kept apart so that no scan passes over them: 10,000 items
 * behind one that runs cost the others nothing. Their chunks have no order; the key knows which call is next.
 */
export class BlockedCalls<In> extends ChunkList<In> {
  /** By place: the calls that are no longer blocked, each the first of a key that no batch holds. */
  readonly ready: ItemRef<In>[] = [];
  readonly #tenants: Tenants<In> | undefined;

  constructor(tenants: Tenants<In> | undefined) {
    super();
    this.#tenants = tenants;
  }

  /** The first of its key, and the key is free. */
  offer(ref: ItemRef<In>): void {
    this.ready.splice(placeOf(this.ready, ref), 0, ref);
    this.#tenants?.offered(ref.chunk, ref.index);
  }

  /** The item is about to leave; it need not have been offered. */
  withdraw(ref: ItemRef<In>): void {
    const at = placeOf(this.ready, ref);
    if (this.ready[at] === ref) this.ready.splice(at, 1);
  }
}

/** The index of the item, or where it would go, among items sorted by place. */
export function placeOf<In>(sorted: readonly ItemRef<In>[], { place }: ItemRef<In>): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]!.place < place) low = middle + 1;
    else high = middle;
  }
  return low;
}
