import type { Chunk } from "./chunks/chunk.ts";
import { LaneQueue } from "./lane-queue.ts";
import type { Lane } from "../contract/settings.ts";

/** A bulk item that has waited this long counts as interactive: nothing waits forever. */
export const bulkPromotionMs = 5000;

/** The waiting calls of one group key, which never share a batch with those of another. */
export class Group<In = unknown> {
  readonly key: unknown;
  readonly laneQueues: readonly [LaneQueue<In>, LaneQueue<In>, LaneQueue<In>];
  /** The policy asked to hold it: the reason of its next batch is "hold" rather than "idle". */
  held = false;
  /** Under standing overload: its newest items go first, in each lane but bulk. */
  newestFirst = false;
  /** Then items that arrived before this moment have waited for too long. */
  tooOldAtMs: number = -Infinity;
  /** Waiting calls that a flush or drain sends without further holding. */
  released = 0;
  /** Which of the two, the last one if both. */
  releasedBy: "flush" | "drain" = "flush";
  /** When it should go, in batches of the queue: the smallest turn first. */
  turn = 0;

  /** `byTurns`: of tenants. */
  constructor(key: unknown, byTurns: boolean) {
    this.key = key;
    const laneQueue = (lane: Lane): LaneQueue<In> => new LaneQueue<In>(this, lane, byTurns);
    this.laneQueues = [laneQueue(0), laneQueue(1), laneQueue(2)];
  }

  get waiting(): number {
    const [immediate, interactive, bulk] = this.laneQueues;
    return immediate.live + interactive.live + bulk.live;
  }

  laneQueue(lane: Lane): LaneQueue<In> {
    return this.laneQueues[lane];
  }

  /** The lane it is served by: that of the first item to go. */
  firstLane(nowMs: number): Lane {
    const [immediate, interactive, bulk] = this.laneQueues;
    if (immediate.live > 0) return 0;
    return interactive.live > 0 || nowMs - bulk.oldestAtMs() >= bulkPromotionMs ? 1 : 2;
  }

  /** From the lowest lane up. The visitor may empty the chunk. */
  everyChunk(visit: (chunk: Chunk<In>) => void): void {
    for (const laneQueue of this.laneQueues.toReversed()) {
      laneQueue.blocked?.everyChunk(visit);
      laneQueue.everyChunk(visit);
    }
  }

  /** Of the first calls to go in each lane: a lower bound, `Infinity` without one. */
  firstDeadlineAtMs(): number {
    let firstMs = Infinity;
    for (const { head, blocked } of this.laneQueues) {
      if (head !== undefined) firstMs = Math.min(firstMs, head.firstDeadlineAtMs());
      for (const { chunk } of blocked?.ready ?? []) firstMs = Math.min(firstMs, chunk.earliestDeadlineAtMs);
    }
    return firstMs;
  }

  oldestAtMs(): number {
    const [immediate, interactive, bulk] = this.laneQueues;
    return Math.min(immediate.oldestAtMs(), interactive.oldestAtMs(), bulk.oldestAtMs());
  }
}
