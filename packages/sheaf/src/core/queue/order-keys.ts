import { EntryList, type Batch, type Entry } from "./entry.ts";
import type { LaneQueue } from "./group.ts";
import type { Tenants } from "./tenants.ts";
import type { Lane } from "../contract/settings.ts";
import { type AbortSignalLike, consumerOf } from "../runtime/signals.ts";

/**
 * The state of one order key: the waiting items, in order, and the batch that holds it. Forgotten when it has neither.
 */
export class OrderKey<In> {
  readonly key: unknown;
  /** Its waiting items in order of arrival, linked: one that leaves costs the same wherever it is. */
  first: Entry<In> | undefined;
  #last: Entry<In> | undefined;
  /** The batch that runs items of this key; no other batch may until it ends. */
  holder: Batch<In> | undefined;
  /** The lowest lane in which an item of this key may wait. */
  lowestLane: Lane = 0;
  /** The choice that took items of this key last, and the item that it must take next. */
  #choice = 0;
  #next: Entry<In> | undefined;

  constructor(key: unknown) {
    this.key = key;
  }

  /** Whether the item may go in the batch that `choice` is choosing; if so, its successor is next. */
  admits(entry: Entry<In>, choice: number): boolean {
    if (this.holder !== undefined) return false;
    if (entry !== (this.#choice === choice ? this.#next : this.first)) return false;
    this.#choice = choice;
    this.#next = entry.ties!.later;
    return true;
  }

  add(entry: Entry<In>): void {
    entry.ties!.earlier = this.#last;
    if (this.#last === undefined) this.first = entry;
    else this.#last.ties!.later = entry;
    this.#last = entry;
  }

  /** Its waiting items, in order. */
  waiting(): Entry<In>[] {
    const entries: Entry<In>[] = [];
    for (let entry = this.first; entry !== undefined; entry = entry.ties!.later) entries.push(entry);
    return entries;
  }

  addFirst(entry: Entry<In>): void {
    entry.ties!.later = this.first;
    if (this.first === undefined) this.#last = entry;
    else this.first.ties!.earlier = entry;
    this.first = entry;
  }

  remove({ ties }: Entry<In>): void {
    const { earlier, later } = ties!;
    if (earlier === undefined) this.first = later;
    else earlier.ties!.later = later;
    if (later === undefined) this.#last = earlier;
    else later.ties!.earlier = earlier;
    ties!.earlier = ties!.later = undefined;
  }
}

/** Whether a consumer's later calls of the key stay behind one that failed with this error; notes it. */
export function stopsKey(
  signal: AbortSignalLike | undefined,
  key: unknown,
  error: unknown,
  rank: number = Infinity,
): signal is AbortSignalLike {
  const consumer = key === undefined ? undefined : signal?.[consumerOf];
  if (consumer?.stops(error) !== true) return false;
  consumer.stopped.set(key, { error, place: Math.min(rank, consumer.stopped.get(key)?.place ?? Infinity) });
  return true;
}

/** What a call is rejected with that comes after one with which its key stopped; undefined where it may go on. */
export function behind(signal: AbortSignalLike | undefined, key: unknown, rank: number = Infinity): Error | undefined {
  const consumer = signal?.[consumerOf];
  const stop = consumer?.stopped.get(key);
  return stop !== undefined && (rank > stop.place || rank === Infinity) ? consumer!.behind(stop.error) : undefined;
}

/** All order keys with waiting or running items. */
export class OrderKeys<In> {
  readonly #keys: Map<unknown, OrderKey<In>> = new Map();
  #ranks = 0;

  get(key: unknown): OrderKey<In> | undefined {
    return this.#keys.get(key);
  }

  /** The rank of an item that enters the queue now. */
  nextRank(): number {
    return ++this.#ranks;
  }

  enter(entry: Entry<In>, lane: Lane): void {
    const { orderKey } = entry.keys!;
    let order = this.#keys.get(orderKey);
    if (order === undefined) this.#keys.set(orderKey, (order = new OrderKey(orderKey)));
    if (order.first === undefined || lane > order.lowestLane) order.lowestLane = lane;
    entry.tie().order = order;
    order.add(entry);
  }

  /** The item is about to leave the queue without running. */
  leaves(entry: Entry<In>): void {
    const order = entry.ties!.order!;
    const isFirst = order.first === entry;
    entry.laneQueue!.blocked?.withdraw(entry);
    order.remove(entry);
    if (isFirst) this.#passOn(order);
  }

  taken(entry: Entry<In>, batch: Batch<In>): void {
    const order = entry.ties!.order!;
    order.remove(entry);
    order.holder = batch;
  }

  /** A batch did not run: its items that have not settled, in order, are the first of their keys again. */
  putBack(entries: readonly Entry<In>[]): void {
    for (const entry of entries.toReversed()) entry.ties!.order?.addFirst(entry);
  }

  /** The run of the batch has ended, with or without its callers. */
  release(batch: Batch<In>): void {
    for (const { ties } of batch.entries) {
      if (ties?.order?.holder !== batch) continue;
      ties.order.holder = undefined;
      this.#passOn(ties.order);
    }
  }

  /** Another item is the first of its key, or the key is free. */
  #passOn(order: OrderKey<In>): void {
    const { first, holder } = order;
    if (holder !== undefined) return;
    if (first === undefined) this.#keys.delete(order.key);
    else if (first.place === first.laneQueue!.blocked) first.laneQueue!.blocked!.offer(first);
  }
}

/**
 * The items of a lane queue that their order key blocks, kept apart so that no scan passes over them: 10,000 items
 * behind one that runs cost the others nothing. They have no order here; the key knows which one is next.
 */
export class BlockedCalls<In> extends EntryList<In> {
  readonly laneQueue: LaneQueue<In>;
  /** By rank: the items that are no longer blocked, each the first of a key that no batch holds. */
  readonly ready: Entry<In>[] = [];
  readonly #tenants: Tenants<In> | undefined;

  constructor(laneQueue: LaneQueue<In>, tenants: Tenants<In> | undefined) {
    super();
    this.laneQueue = laneQueue;
    this.#tenants = tenants;
  }

  /** The first of its key, and the key is free. */
  offer(entry: Entry<In>): void {
    this.ready.splice(placeOf(this.ready, entry), 0, entry);
    this.#tenants?.offered(entry);
  }

  /** The item is about to leave; it need not have been offered. */
  withdraw(entry: Entry<In>): void {
    const at = placeOf(this.ready, entry);
    if (this.ready[at] === entry) this.ready.splice(at, 1);
  }
}

/** The index of the item, or where it would go, among items sorted by rank. */
function placeOf<In>(sorted: readonly Entry<In>[], { ties }: Entry<In>): number {
  const { rank } = ties!;
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]!.ties!.rank < rank) low = middle + 1;
    else high = middle;
  }
  return low;
}
