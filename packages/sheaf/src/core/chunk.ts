import type { ChunkRow } from "./chunk-row.ts";
import type { Epoch } from "./epoch.ts";
import type { Line } from "./line.ts";
import type { AbortSignalLike } from "./runtime.ts";
import type { Slot } from "./slot.ts";

/**
 * What settles one call: the resolve function of its promise, or an entry of a list. Of a promise only `resolve` is
 * kept: rejecting is resolving with a rejected promise, and a second function per call would cost a third of its bytes.
 */
export type Settler = ((value: unknown) => void) | ListEntry;

/** A call that belongs to a list (`many`, `settle`), or that asks how its item ran: the chunk knows, while it runs. */
export interface ListEntry {
  fulfil(value: unknown, chunk: Chunk, index: number, nowMs: number): void;
  reject(error: unknown): void;
}

export function reject(settler: Settler, error: unknown): void {
  if (typeof settler === "function") settler(Promise.reject(error));
  else settler.reject(error);
}

/** What a chunk that runs knows of its batch. */
export interface BatchInFlight {
  readonly batchId: number;
  readonly size: number;
  readonly startedAtMs: number;
  /** Once its run has ended. */
  readonly runMs: number | undefined;
  abandonedByAll(): void;
}

/**
 * Calls in a row, as parallel arrays. A chunk waits in a line of the queue; a batch is a chunk that has left it, so a
 * full chunk becomes a batch without a copy. Whoever takes an entry's settler settles the call: `undefined` there means
 * settled, and for a waiting entry that it is gone.
 */
export class Chunk<In = unknown> {
  items: In[] = [];
  settlers: (Settler | undefined)[];
  /** Arrival of every entry, as long as they have one in common: those of a burst do. */
  firstAtMs: number = 0;
  /** Arrival of each, once they differ. */
  arrivalsMs: number[] | undefined = undefined;
  /** Entries pushed so far, settled ones included. */
  count = 0;
  /** While it waits: entries before this one have been taken or are gone. */
  head = 0;
  /** Entries not settled. */
  live = 0;
  epoch: Epoch;
  /** The line it waits in; `undefined` once it is a batch, or where it holds the sharers of a slot. */
  line: Line<In> | undefined;
  /** The chunks among which it waits: the line itself, or what the line has set aside. */
  row: ChunkRow<In> | undefined = undefined;
  next: Chunk<In> | undefined = undefined;
  previous: Chunk<In> | undefined = undefined;
  /** While it runs. */
  run: BatchInFlight | undefined = undefined;

  // Side arrays, made when the first entry needs one; an entry without has a hole.
  /** Only where a batch mixes epochs. */
  epochs: Epoch[] | undefined = undefined;
  signals: (AbortSignalLike | undefined)[] | undefined = undefined;
  deadlinesMs: number[] | undefined = undefined;
  weights: number[] | undefined = undefined;
  tags: unknown[] | undefined = undefined;
  /** True for an entry that shares its batch with no other. */
  alone: boolean[] | undefined = undefined;
  slots: Slot<In>[] | undefined = undefined;
  /** One listener per signal and chunk: adding and removing one costs more than the rest of a call. */
  listeners: Map<AbortSignalLike, () => void> | undefined = undefined;
  /** A lower bound of the deadlines of live entries. */
  earliestDeadlineMs: number = Infinity;

  /** `expected`: entries that will probably come; room for them is made at once. */
  constructor(epoch: Epoch, line: Line<In> | undefined, expected: number = 0) {
    this.epoch = epoch;
    this.line = line;
    this.settlers = new Array<Settler | undefined>(expected);
  }

  push(item: In, settler: Settler, arrivedAtMs: number): void {
    this.settlers[this.count] = settler;
    this.fill(item, arrivedAtMs);
  }

  /** Completes the next entry, whose settler stands in its place already. */
  fill(item: In, arrivedAtMs: number): void {
    const index = this.count++;
    this.items[index] = item;
    if (index === 0) this.firstAtMs = arrivedAtMs;
    else if (this.arrivalsMs !== undefined || arrivedAtMs !== this.firstAtMs) this.arriveAt(index, arrivedAtMs);
    this.live++;
  }

  arrivedAtMs(index: number): number {
    return this.arrivalsMs === undefined ? this.firstAtMs : this.arrivalsMs[index]!;
  }

  /** Arrival of its first live entry; a chunk in a line has one. */
  firstLiveAtMs(): number {
    while (this.settlers[this.head] === undefined) this.head++;
    return this.arrivedAtMs(this.head);
  }

  arriveAt(index: number, atMs: number): void {
    this.arrivalsMs ??= new Array<number>(this.count).fill(this.firstAtMs);
    this.arrivalsMs[index] = atMs;
  }

  epochOf(index: number): Epoch {
    return this.epochs === undefined ? this.epoch : this.epochs[index]!;
  }
}
