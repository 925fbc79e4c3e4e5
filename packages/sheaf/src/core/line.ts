import type { Chunk } from "./chunk.ts";
import type { Group } from "./group.ts";

/** 0 immediate, 1 interactive, 2 bulk: lower goes first. */
export type Lane = 0 | 1 | 2;

/**
 * The waiting calls of one lane of one group, first in first out, as linked chunks. A chunk leaves the line when none
 * of its calls waits any more, so what has gone holds memory only beside something that still waits.
 */
export class Line<In = unknown> {
  readonly group: Group<In>;
  readonly lane: Lane;
  head: Chunk<In> | undefined = undefined;
  tail: Chunk<In> | undefined = undefined;
  /** Calls that wait here. */
  live = 0;
  /**
   * Arrival of the oldest item whose place does not tell its age: promotion puts an item last, and an item can outlive
   * the caller that it came with. A lower bound until the line is empty.
   */
  outOfPlaceAtMs: number = Infinity;

  constructor(group: Group<In>, lane: Lane) {
    this.group = group;
    this.lane = lane;
  }

  append(chunk: Chunk<In>): void {
    chunk.previous = this.tail;
    if (this.tail === undefined) this.head = chunk;
    else this.tail.next = chunk;
    this.tail = chunk;
  }

  unlink(chunk: Chunk<In>): void {
    const { previous, next } = chunk;
    if (previous === undefined) this.head = next;
    else previous.next = next;
    if (next === undefined) this.tail = previous;
    else next.previous = previous;
    chunk.line = chunk.previous = chunk.next = undefined;
    if (this.head === undefined) this.outOfPlaceAtMs = Infinity;
  }

  keepAge(arrivedAtMs: number): void {
    if (arrivedAtMs < this.outOfPlaceAtMs) this.outOfPlaceAtMs = arrivedAtMs;
  }

  /** Arrival of its oldest item, `Infinity` when it is empty. */
  oldestAtMs(): number {
    const { head } = this;
    if (head === undefined) return Infinity;
    while (head.settlers[head.head] === undefined) head.head++; // a chunk in a line has a live entry
    return Math.min(head.arrivedAtMs(head.head), this.outOfPlaceAtMs);
  }
}
