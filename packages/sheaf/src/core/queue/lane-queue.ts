import { ChunkList } from "./chunks/chunk-list.ts";
import type { Chunk, LaneGroup, BlockedList, LaneList } from "./chunks/chunk.ts";
import type { Lane } from "../contract/settings.ts";
import { Turns } from "./tenants/turns.ts";

/** The waiting calls of one lane of one group, first in first out. */
export class LaneQueue<In = unknown> extends ChunkList<In> implements LaneList<In> {
  readonly group: LaneGroup<In>;
  readonly lane: Lane;
  /** Calls that wait here, blocked ones included. */
  live = 0;
  /** Calls that their order key blocks; made when the first one is met while a batch is chosen. */
  blocked: BlockedList<In> | undefined;
  readonly turns: Turns<In> | undefined;
  /**
   * Arrival of the oldest item whose place does not show its age: promotion puts an item last, and an item can outlive
   * the caller that it came with. A lower bound until the queue is empty.
   */
  outOfPlaceAtMs: number = Infinity;

  constructor(group: LaneGroup<In>, lane: Lane, byTurns: boolean) {
    super();
    this.turns = byTurns ? new Turns<In>() : undefined;
    this.group = group;
    this.lane = lane;
  }

  /** The first chunk whose calls came later than `atMs`, or in the same burst and not with an earlier batch. */
  firstAfter(atMs: number, batchId: number): Chunk<In> | undefined {
    let chunk = this.head;
    for (; chunk !== undefined; chunk = chunk.next) {
      if (chunk.putBackFrom === batchId) continue;
      const firstAtMs = chunk.firstLiveAtMs();
      if (firstAtMs > atMs || (firstAtMs === atMs && chunk.putBackFrom > batchId)) break;
    }
    return chunk;
  }

  /** `calls` have entered, or left where it is negative. */
  count(calls: number): void {
    this.live += calls;
    if (this.live === 0) this.outOfPlaceAtMs = Infinity;
  }

  keepAge(arrivedAtMs: number): void {
    if (arrivedAtMs < this.outOfPlaceAtMs) this.outOfPlaceAtMs = arrivedAtMs;
  }

  /** Arrival of its oldest item that is not known to be blocked, `Infinity` without one. */
  oldestAtMs(): number {
    const { head } = this;
    const back = this.blocked?.ready[0];
    if (head === undefined && back === undefined) return Infinity;
    const backAtMs = back === undefined ? Infinity : back.chunk.arrivedAtMs(back.index);
    return Math.min(head === undefined ? Infinity : head.firstLiveAtMs(), backAtMs, this.outOfPlaceAtMs);
  }
}
