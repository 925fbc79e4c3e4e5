import type { AbortListeners } from "../runtime/abort-listeners.ts";
import type { Arrival, Terms } from "./arrival.ts";
import type { Settler } from "./chunk.ts";
import type { Epoch } from "./epoch.ts";

/** Calls that wait for room in the queue: a list that is longer than the room, or one call with onQueueFull "wait". */
export interface Waiter<In> extends Terms {
  readonly items: ArrayLike<In>;
  /** The next item to let in. */
  position: number;
  settlerAt(index: number): Settler;
  /** Keys of a single call, taken when it was made; a list's are taken item by item, as they are let in. */
  readonly arrival: Arrival<In> | undefined;
  epoch: Epoch;
  /** Its listener on `signal`, while it waits here. */
  onAbort?: () => void;
}

/**
 * Stands before the queue and lets items in, in order of arrival, as room appears. What waits here stays in its
 * callers' arrays.
 */
export class Waiters<In> {
  /** Calls and lists that wait for room: the size of the set, which every call asks for. */
  size = 0;
  /** Items that they hold back. */
  items = 0;
  /** A lower bound of the deadlines of those who wait. */
  earliestDeadlineMs: number = Infinity;
  /** In order of arrival; a Set, because a caller can leave from the middle. */
  readonly #waiting: Set<Waiter<In>> = new Set();
  readonly #aborts: AbortListeners;

  constructor(aborts: AbortListeners) {
    this.#aborts = aborts;
  }

  add(feed: Waiter<In>, onAbort: () => void): void {
    this.#waiting.add(feed);
    this.items += feed.items.length - feed.position;
    this.size = this.#waiting.size;
    if (feed.deadlineMs < this.earliestDeadlineMs) this.earliestDeadlineMs = feed.deadlineMs;
    if (feed.signal === undefined) return;
    feed.onAbort = onAbort;
    this.#aborts.add(feed.signal, onAbort);
  }

  remove(feed: Waiter<In>): void {
    this.#waiting.delete(feed);
    this.items -= feed.items.length - feed.position;
    this.size = this.#waiting.size;
    // Or the timer for a deadline that no longer matters would keep the process alive.
    if (this.size === 0) this.earliestDeadlineMs = Infinity;
    if (feed.onAbort !== undefined) this.#aborts.remove(feed.signal!, feed.onAbort);
  }

  /** The next item of those who wait has room now. */
  next(feed: Waiter<In>): number {
    this.items--;
    return feed.position++;
  }

  first(): Waiter<In> | undefined {
    return this.#waiting.values().next().value;
  }

  all(): Waiter<In>[] {
    return [...this.#waiting];
  }

  /** Those whose deadline has come. The caller of this removes them. */
  expired(nowMs: number): Waiter<In>[] {
    if (this.earliestDeadlineMs > nowMs) return [];
    this.earliestDeadlineMs = Infinity;
    return this.all().filter(({ deadlineMs }) => {
      if (deadlineMs > nowMs) this.earliestDeadlineMs = Math.min(this.earliestDeadlineMs, deadlineMs);
      return deadlineMs <= nowMs;
    });
  }
}
