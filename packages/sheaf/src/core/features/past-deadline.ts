import type { Chunk } from "../queue/chunk.ts";
import type { Group } from "../queue/group.ts";

/**
 * Calls back with waiting entries, oldest first in each lane, whose deadline is before `beforeMs`, until one is in time
 * or only one entry of the group is left. The visitor withdraws the caller.
 */
export function eachPastDeadline<In>(
  group: Group<In>,
  beforeMs: number,
  visit: (chunk: Chunk<In>, index: number) => void,
): void {
  // The highest lane last: the one that is left is the youngest of those.
  for (let lane = 2; lane >= 0; lane--) {
    const laneQueue = group.laneQueues[lane]!;
    for (const row of [laneQueue.blocked, laneQueue]) {
      for (let chunk = row?.head; chunk !== undefined;) {
        const { next } = chunk; // the visitor may empty the chunk, which unlinks it
        const { deadlinesMs } = chunk;
        for (let i = chunk.head; i < chunk.count; i++) {
          // A caller that goes can hand its place to one who shares the item: look again until it is empty or in time.
          while (chunk.settlers[i] !== undefined) {
            if (group.waiting <= 1) return;
            if (!((deadlinesMs?.[i] ?? Infinity) < beforeMs)) break;
            visit(chunk, i);
          }
          if (chunk.settlers[i] !== undefined) break;
        }
        if (chunk.live > 0) break;
        chunk = next;
      }
    }
  }
}

/** The earliest deadline among the first waiting calls of each lane; `Infinity` without one. */
export function earliestDeadlineMs<In>(group: Group<In>): number {
  let earliest = Infinity;
  for (const { head, blocked } of group.laneQueues) {
    if (head?.deadlinesMs !== undefined) {
      for (let i = head.head; i < head.count; i++) {
        if (head.settlers[i] !== undefined) earliest = Math.min(earliest, head.deadlinesMs[i] ?? Infinity);
      }
    }
    for (const { chunk, index } of blocked?.ready ?? []) {
      earliest = Math.min(earliest, chunk.deadlinesMs?.[index] ?? Infinity);
    }
  }
  return earliest;
}
