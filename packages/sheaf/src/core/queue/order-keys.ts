import { EntryList, LinkedList, type Batch, type Entry } from "./entry.ts";
import type { Ties } from "./keys.ts";
import type { LaneQueue } from "./group.ts";
import type { Tenants } from "./tenants.ts";
import type { Lane } from "../contract/settings.ts";
import { type AbortSignalLike, consumerOf } from "../runtime/signals.ts";

/**
 * The state of one order key: the waiting items, in order, and the batch that holds it. Forgotten when it has neither.
 */
export class OrderKey<In> extends LinkedList<Ties<In>> {
  readonly key: unknown;
  /** The batch that runs items of this key; no other batch may until it ends. */
  holder: Batch<In> | undefined;
  /** The lowest lane in which an item of this key may wait. */
  lowestLane: Lane = 0;
  /** The choice that took items of this key last, and the item that it must take next. */
  #choice = 0;
  #next: Ties<In> | undefined;

  constructor(key: unknown) {
    super();
    this.key = key;
  }

  /** Whether the item may go in the batch that `choice` is choosing; if so, its successor is next. */
  admits({ ties }: Entry<In>, choice: number): boolean {
    if (this.holder !== undefined) return false;
    if (ties !== (this.#choice === choice ? this.#next : this.head)) return false;
    this.#choice = choice;
    this.#next = ties!.next;
    return true;
  }

  /** Its waiting items, in order. */
  waiting(): Entry<In>[] {
    const entries: Entry<In>[] = [];
    for (let ties = this.head; ties !== undefined; ties = ties.next) entries.push(ties.entry);
    return entries;
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
    if (order.head === undefined || lane > order.lowestLane) order.lowestLane = lane;
    const ties = entry.tie();
    ties.order = order;
    order.insert(ties);
  }

  /** The item is about to leave the queue without running. */
  leaves(entry: Entry<In>): void {
    const ties = entry.ties!;
    const order = ties.order!;
    const isFirst = order.head === ties;
    entry.laneQueue!.blocked?.withdraw(entry);
    order.unlink(ties);
    if (isFirst) this.#passOn(order);
  }

  taken(ties: Ties<In>, batch: Batch<In>): void {
    ties.order!.unlink(ties);
    ties.order!.holder = batch;
  }

  /** A batch did not run: its items that have not settled, in order, are the first of their keys again. */
  putBack(entries: readonly Entry<In>[]): void {
    for (const { ties } of entries.toReversed()) ties!.order?.insert(ties!, ties!.order.head);
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
    if (order.holder !== undefined) return;
    const first = order.head?.entry;
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
