import type { AbortSignalLike } from "../runtime/runtime.ts";
import type { Lane } from "../contract/settings.ts";
import type { Run } from "../dispatch/run.ts";
import type { LaneQueue } from "./group.ts";
import type { OrderKey } from "./order-keys.ts";
import type { Claim } from "./turns.ts";

/**
 * Settles one call: the resolve function of its promise, or an entry of a multi-call. Of a promise only `resolve`
 * is kept: rejecting is resolving with a rejected promise, and a second function per call would cost a third of its
 * bytes.
 */
export type Settler = ((value: unknown) => void) | MultiCallEntry;

/** A call that is part of a list (`many`, `settle`), or that asks how its item ran, which the running chunk knows. */
export interface MultiCallEntry {
  fulfil(value: unknown, chunk: Chunk, index: number, nowMs: number): void;
  reject(error: unknown): void;
}

export function reject(settler: Settler, error: unknown): void {
  if (typeof settler === "function") settler(Promise.reject(error));
  else settler.reject(error);
}

/**
 * Where an item is, for the features that must find it again: order and dedupe. Only batchers with an `orderKey` or
 * `dedupeKey` make refs.
 */
export interface ItemRef<In> {
  chunk: Chunk<In>;
  index: number;
  order: OrderKey<In> | undefined;
  /** Its neighbours among the waiting items of its order key. */
  previous: ItemRef<In> | undefined;
  next: ItemRef<In> | undefined;
  /** Where the batcher has an `orderKey`: the item that entered the queue earlier has the lower place. */
  place: number;
  dedupeKey: unknown;
  /** Further callers of the same item; a chunk of its own that is in no queue. */
  duplicates: Chunk<In> | undefined;
  /** Removes it from the map of items that equal calls can join. */
  leaveDedupe: ((ref: ItemRef<In>) => void) | undefined;
}

/**
 * Successive calls, as parallel arrays. A chunk waits in a lane queue; a batch is a chunk that has left it, so a
 * full chunk becomes a batch without a copy. The code that takes an entry's settler settles the call: `undefined` there
 * means settled, and for a waiting entry that it is gone.
 */
export class Chunk<In = unknown> {
  items: In[];
  settlers: (Settler | undefined)[];
  /** Arrival of every entry, as long as all have the same: those of a burst do. */
  firstAtMs: number = 0;
  /** Arrival of each entry, once they differ. */
  arrivalsAtMs: number[] | undefined;
  /** Entries pushed so far, settled ones included. */
  count = 0;
  /** While it waits: entries before this one have been taken or have left. */
  head = 0;
  /** Entries that have not settled. */
  live = 0;
  epoch: Epoch;
  /** The lane queue it waits in; `undefined` once it is a batch, or where it holds the duplicates of an item. */
  laneQueue: LaneQueue<In> | undefined;
  /** The list it is linked in: the lane queue itself, or its blocked calls. */
  list: ChunkList<In> | undefined;
  next: Chunk<In> | undefined;
  previous: Chunk<In> | undefined;
  /** While it runs. */
  run: Run<In> | undefined;

  // Side arrays, made when the first entry needs one, with a hole for each entry that needs none.
  /** Only where a batch mixes epochs. */
  epochs: Epoch[] | undefined;
  signals: (AbortSignalLike | undefined)[] | undefined;
  deadlinesAtMs: number[] | undefined;
  weights: number[] | undefined;
  /** With `weigh`: from when on no newer entry may overtake it because it costs less. */
  duesAtMs: number[] | undefined;
  tags: unknown[] | undefined;
  /** True for an entry that shares its batch with no other. */
  alone: boolean[] | undefined;
  refs: ItemRef<In>[] | undefined;
  /** True for a bulk entry that an item of a higher lane has lifted to it. */
  lifted: boolean[] | undefined;
  /** Of entries that were taken from another lane than the interactive one, and of duplicates that are bulk. */
  lanes: Lane[] | undefined;
  /** How often an entry has come back from a batch that did not run. */
  putBacks: number[] | undefined;
  /** While it waits again: the batch that its entries came back from. */
  putBackFrom: number = Infinity;
  /** Of the tenant of the entry's caller; of duplicates too. */
  claims: (Claim<In> | undefined)[] | undefined;
  /** One listener per signal and chunk: adding and removing one costs more than the rest of a call. */
  listeners: Map<AbortSignalLike, () => void> | undefined;
  /** A lower bound of the deadlines of live entries. */
  earliestDeadlineAtMs: number = Infinity;
  /** Of all entries so far; `Infinity` once an entry has an earlier deadline than one before it. */
  latestDeadlineAtMs: number = -Infinity;
  /** Of all entries so far. */
  heaviest = 0;

  /** `expected`: entries that will probably come. Room for them is reserved at once: growing takes a tenth of a call. */
  constructor(epoch: Epoch, laneQueue: LaneQueue<In> | undefined, expected: number = 0) {
    this.epoch = epoch;
    this.laneQueue = laneQueue;
    this.items = new Array<In>(expected);
    this.settlers = new Array<Settler | undefined>(expected);
  }

  push(item: In, settler: Settler, arrivedAtMs: number): void {
    this.settlers[this.count] = settler;
    this.fill(item, arrivedAtMs);
  }

  /** Completes the next entry, whose settler is in its place already. */
  fill(item: In, arrivedAtMs: number): void {
    const index = this.count++;
    this.items[index] = item;
    if (index === 0) this.firstAtMs = arrivedAtMs;
    else if (this.arrivalsAtMs !== undefined || arrivedAtMs !== this.firstAtMs) this.arriveAt(index, arrivedAtMs);
    this.live++;
  }

  weigh(index: number, weight: number, dueAtMs: number): void {
    (this.weights ??= [])[index] = weight;
    (this.duesAtMs ??= [])[index] = dueAtMs;
    if (weight > this.heaviest) this.heaviest = weight;
  }

  arrivedAtMs(index: number): number {
    return this.arrivalsAtMs === undefined ? this.firstAtMs : this.arrivalsAtMs[index]!;
  }

  /** Arrival of its first live entry; a chunk in a queue has one. */
  firstLiveAtMs(): number {
    return this.arrivedAtMs(this.#firstLive());
  }

  #firstLive(): number {
    while (this.settlers[this.head] === undefined) this.head++;
    return this.head;
  }

  /** The first deadline of its live entries, or a moment before it. */
  firstDeadlineAtMs(): number {
    // Where each entry's deadline is after that of the one before it: entries that were taken leave the lower bound behind.
    const isAscending = this.latestDeadlineAtMs < Infinity;
    const firstAtMs = (isAscending && this.deadlinesAtMs?.[this.#firstLive()]) || Infinity;
    return firstAtMs < Infinity ? firstAtMs : this.earliestDeadlineAtMs;
  }

  arriveAt(index: number, atMs: number): void {
    this.arrivalsAtMs ??= new Array<number>(this.count).fill(this.firstAtMs);
    this.arrivalsAtMs[index] = atMs;
  }

  /** The part of a batch's entries that are bulk. */
  get bulkRate(): number {
    let bulk = 0;
    for (const lane of this.lanes ?? []) if (lane === 2) bulk++;
    return bulk / this.count;
  }

  epochOf(index: number): Epoch {
    return this.epochs === undefined ? this.epoch : this.epochs[index]!;
  }
}

/** Linked chunks in which calls wait. A chunk leaves when none of its calls is left waiting. */
export class ChunkList<In> {
  head: Chunk<In> | undefined;
  tail: Chunk<In> | undefined;

  append(chunk: Chunk<In>): void {
    chunk.list = this;
    chunk.previous = this.tail;
    if (this.tail === undefined) this.head = chunk;
    else this.tail.next = chunk;
    this.tail = chunk;
  }

  /** Puts a chunk in front of another, or at the end. */
  insert(chunk: Chunk<In>, next: Chunk<In> | undefined): void {
    if (next === undefined) return this.append(chunk);
    const { previous } = next;
    chunk.list = this;
    chunk.next = next;
    chunk.previous = previous;
    next.previous = chunk;
    if (previous === undefined) this.head = chunk;
    else previous.next = chunk;
  }

  unlink(chunk: Chunk<In>): void {
    const { previous, next } = chunk;
    if (previous === undefined) this.head = next;
    else previous.next = next;
    if (next === undefined) this.tail = previous;
    else next.previous = previous;
    chunk.laneQueue = chunk.list = chunk.previous = chunk.next = undefined;
  }

  /** The visitor may empty the chunk, which unlinks it; a clock that calls the batcher meanwhile may empty others. */
  everyChunk(visit: (chunk: Chunk<In>) => void): void {
    const chunks: Chunk<In>[] = [];
    for (let chunk = this.head; chunk !== undefined; chunk = chunk.next) chunks.push(chunk);
    for (const chunk of chunks) if (chunk.list === this) visit(chunk);
  }
}

/**
 * Epochs let flush and drain know when "everything until now" has settled, with one counter each: every call counts in
 * one epoch, and a flush or drain ends the current one. A count is read only while something waits for it.
 */
export class Epoch {
  /** Calls of this epoch that have not settled, and epochs that took some of its calls over. */
  unsettled = 0;
  /** Its waiting items go without further holding, and this is the reason of their batches. */
  release: "flush" | "drain" | undefined;
  /** Set when the epoch is sealed: called when `unsettled` reaches 0. */
  whenSettled: (() => void) | undefined;
  /** Older sealed epochs whose calls this one took over; each counts this epoch once. */
  readonly heirOf: Epoch[] = [];
  order = 0;

  settled(calls: number): void {
    this.unsettled -= calls;
    if (this.unsettled === 0 && this.whenSettled !== undefined) this.whenSettled();
  }
}

/** The epochs of one batcher. */
export class Epochs {
  current: Epoch = new Epoch();
  #sealed: Epoch[] = []; // in chronological order, unsettled ones only
  #order = 0;
  #waiters: { readonly epoch: Epoch; readonly andEarlier: boolean; readonly resolve: () => void }[] = [];

  /** Ends the current epoch: calls from now on count in a new one. */
  seal(): Epoch {
    const epoch = this.current;
    this.current = new Epoch();
    return this.#sealAs(epoch, "drain");
  }

  /** A sealed epoch for calls that wait now; `takeOver` moves them. */
  separate(): Epoch {
    return this.#sealAs(new Epoch(), "flush");
  }

  /** Moves `calls` calls from one epoch to a sealed one. */
  takeOver(from: Epoch, to: Epoch, calls: number): void {
    if (from === to || calls === 0) return;
    to.unsettled += calls;
    if (from.whenSettled !== undefined) {
      // Something waits for `from`: it stays unsettled until its successor has settled.
      if (to.heirOf.at(-1) !== from) {
        to.heirOf.push(from);
        from.unsettled += 1;
      }
    }
    from.unsettled -= calls;
  }

  /** Resolves when every call of a sealed epoch has settled; with `andEarlier`, those of older epochs too. */
  settlement(epoch: Epoch, andEarlier: boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#waiters.push({ epoch, andEarlier, resolve });
      if (epoch.unsettled === 0) this.#ended(epoch);
    });
  }

  #sealAs(epoch: Epoch, release: "flush" | "drain"): Epoch {
    epoch.release = release;
    epoch.order = ++this.#order;
    epoch.whenSettled = () => this.#ended(epoch);
    this.#sealed.push(epoch);
    return epoch;
  }

  #ended(first: Epoch): void {
    // A loop, not a recursion: a caller that flushes after every call makes a long chain of successors.
    const ended = [first];
    for (let epoch = ended.pop(); epoch !== undefined; epoch = ended.pop()) {
      for (const ancestor of epoch.heirOf.splice(0)) if (--ancestor.unsettled === 0) ended.push(ancestor);
    }
    this.#sealed = this.#sealed.filter(({ unsettled }) => unsettled > 0);
    const oldest = this.#sealed[0]?.order ?? Infinity;
    this.#waiters = this.#waiters.filter(({ epoch, andEarlier, resolve }) => {
      if (andEarlier ? oldest <= epoch.order : epoch.unsettled > 0) return true;
      resolve();
      return false;
    });
  }
}
