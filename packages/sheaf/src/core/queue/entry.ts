import type { AbortSignalLike } from "../runtime/signals.ts";
import type { Lane } from "../contract/settings.ts";
import type { Epoch } from "./epoch.ts";
import type { LaneQueue } from "./group.ts";
import { Keys, Ties } from "./keys.ts";

/**
 * Settles one call: the resolve function of its promise, or an entry of a multi-call. Of a promise only `resolve`
 * is kept: rejecting is resolving with a rejected promise, and a second function per call would cost a third of its
 * bytes.
 */
export type Settler = ((value: unknown) => void) | MultiCallEntry;

/** A call that is part of a list (`many`, `settle`), or that asks how its item ran, which its run knows. */
export interface MultiCallEntry {
  fulfil(value: unknown, run: RunOfBatch, arrivedAtMs: number, nowMs: number): void;
  reject(error: unknown): void;
}

export function reject(settler: Settler, error: unknown): void {
  if (typeof settler === "function") settler(Promise.reject(error));
  else settler.reject(error);
}

/** How the caller of an item or a list waits; calls without options share those of their burst. */
export interface Terms {
  readonly lane: Lane;
  readonly signal: AbortSignalLike | undefined;
  /** `Infinity` without a timeout. */
  readonly deadlineAtMs: number;
  readonly arrivedAtMs: number;
  readonly tag: unknown;
  /** It shares its batch with no other. */
  readonly alone: boolean;
}

/** Whether its caller may leave before it settles. */
export const isWatched = ({ signal, deadlineAtMs }: Terms): boolean =>
  signal !== undefined || deadlineAtMs !== Infinity;

/** One item and its caller, from the call until it settles. The code that takes its settler settles the call. */
export class Entry<In = unknown> {
  readonly item: In;
  /** `undefined` means settled. */
  settler: Settler | undefined;
  /** Those of the caller that it has now. */
  terms: Terms;
  epoch: Epoch;
  keys: Keys<In> | undefined;
  /** The list in which it waits, or the batch in which it runs; `undefined` before, and for one who shares an item. */
  place: EntryList<In> | Batch<In> | undefined = undefined;
  /** While it waits: its neighbours. */
  previous: Entry<In> | undefined = undefined;
  next: Entry<In> | undefined = undefined;

  constructor(item: In, terms: Terms, epoch: Epoch, keys?: Keys<In>, settler?: Settler) {
    this.item = item;
    this.settler = settler;
    this.terms = terms;
    this.epoch = epoch;
    this.keys = keys;
  }

  get hasLeft(): boolean {
    return this.settler === undefined;
  }

  /** The queue in which it waits. */
  get laneQueue(): LaneQueue<In> | undefined {
    return this.place?.laneQueue;
  }

  get lane(): Lane {
    return this.ties?.lane ?? this.terms.lane;
  }

  /** It takes the room of bulk calls, also where it has been lifted. */
  get isBulk(): boolean {
    return this.lane === 2 || this.ties?.isLifted === true;
  }

  get ties(): Ties<In> | undefined {
    return this.keys?.ties;
  }

  /** Its ties, made when it gets the first. */
  tie(): Ties<In> {
    const keys = (this.keys ??= new Keys());
    return (keys.ties ??= new Ties(this));
  }

  get weight(): number {
    return this.keys?.weight ?? 1;
  }
}

/** A list whose members link each other: one that leaves costs the same wherever it is. */
export class LinkedList<T extends { previous: T | undefined; next: T | undefined }> {
  head: T | undefined = undefined;
  tail: T | undefined = undefined;

  /** Puts a member in front of another, or at the end. */
  insert(member: T, next?: T): void {
    const previous = next === undefined ? this.tail : next.previous;
    member.previous = previous;
    member.next = next;
    if (previous === undefined) this.head = member;
    else previous.next = member;
    if (next === undefined) this.tail = member;
    else next.previous = member;
  }

  unlink(member: T): void {
    const { previous, next } = member;
    if (previous === undefined) this.head = next;
    else previous.next = next;
    if (next === undefined) this.tail = previous;
    else next.previous = previous;
    member.previous = member.next = undefined;
  }
}

/** Entries that wait. */
export abstract class EntryList<In> extends LinkedList<Entry<In>> {
  abstract readonly laneQueue: LaneQueue<In>;

  override insert(entry: Entry<In>, next?: Entry<In>): void {
    entry.place = this;
    super.insert(entry, next);
  }

  override unlink(entry: Entry<In>): void {
    entry.place = undefined;
    super.unlink(entry);
  }
}

export interface Weights {
  readonly sum: number;
  readonly heaviest: number;
}

export function weightsOf(entries: readonly Entry[]): Weights {
  let sum = 0;
  let heaviest = 0;
  for (const { weight } of entries) {
    sum += weight;
    heaviest = Math.max(heaviest, weight);
  }
  return { sum, heaviest };
}

/** What a caller learns of the run of its batch. */
export interface RunOfBatch {
  readonly batchId: number;
  readonly size: number;
  readonly startedAtMs: number;
  readonly runMs: number | undefined;
}

/** Entries that run together. */
export class Batch<In = unknown> {
  readonly laneQueue: undefined;
  readonly entries: Entry<In>[];
  /** Entries that have not settled. */
  live = 0;
  /** Those that came from the bulk lane. */
  bulk = 0;
  /** With `weigh`. */
  weights: Weights | undefined = undefined;
  run: (RunOfBatch & { abandonedByAll(): void }) | undefined = undefined;

  /** Of this many entries: room for them is reserved at once. */
  constructor(size: number) {
    this.entries = new Array<Entry<In>>(size);
  }
}
