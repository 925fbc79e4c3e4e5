import type { Chunk, Lane } from "./chunk.ts";
import { Line } from "./lane-queue.ts";

/** A bulk item that has waited this long counts as interactive: nothing waits for ever. */
export const bulkPromotionMs = 5000;

/** The waiting calls of one group key: never shares a batch with another group. */
export class Group<In = unknown> {
  readonly key: unknown;
  readonly lines: readonly [Line<In>, Line<In>, Line<In>];
  /** The policy asked to hold it: its next batch is a "hold" rather than an "idle" one. */
  held = false;
  /** Waiting calls that a flush or drain told to go without further holding. */
  released = 0;
  /** When it should go, in batches of the queue: the smallest turn first. */
  turn = 0;

  constructor(key: unknown) {
    this.key = key;
    this.lines = [new Line<In>(this, 0), new Line<In>(this, 1), new Line<In>(this, 2)];
  }

  get waiting(): number {
    const [immediate, interactive, bulk] = this.lines;
    return immediate.live + interactive.live + bulk.live;
  }

  line(lane: Lane): Line<In> {
    return this.lines[lane];
  }

  /** The lane by which it is served: that of the first item to go. */
  firstLane(nowMs: number): Lane {
    const [immediate, interactive, bulk] = this.lines;
    if (immediate.live > 0) return 0;
    return interactive.live > 0 || nowMs - bulk.oldestAtMs() >= bulkPromotionMs ? 1 : 2;
  }

  /** Why those that are released go. */
  releaseReason(): "flush" | "drain" | undefined {
    if (this.released === 0) return undefined;
    for (const line of this.lines) {
      for (const row of [line, line.aside]) {
        for (let chunk = row?.head; chunk !== undefined; chunk = chunk.next) {
          if (chunk.epoch.release !== undefined) return chunk.epoch.release;
        }
      }
    }
    return undefined;
  }

  /** The visitor may empty the chunk. */
  everyChunk(visit: (chunk: Chunk<In>) => void): void {
    for (const line of this.lines) {
      line.everyChunk(visit);
      line.aside?.everyChunk(visit);
    }
  }

  oldestAtMs(): number {
    const [immediate, interactive, bulk] = this.lines;
    return Math.min(immediate.oldestAtMs(), interactive.oldestAtMs(), bulk.oldestAtMs());
  }
}
