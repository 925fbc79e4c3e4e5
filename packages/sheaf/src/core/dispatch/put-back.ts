import type { Chunk } from "../queue/chunk.ts";
import type { Queue } from "../queue/queue.ts";
import type { Settlement } from "../queue/settlement.ts";
import type { Throttle } from "./rate-limit.ts";
import type { Run } from "./run.ts";

/** An item that comes back as often as this without a pause would run forever. */
const maxPutBacks = 1000;

/**
 * Puts the items of a batch that did not run back to the waiting ones. A call gets the error instead, whether its item ran or
 * only waited, if its deadline comes before the end of the pause, or if it has no deadline and has waited through pauses of
 * `maxPauseMs`.
 */
export function putBack<In>(
  { calls: batch, group, batchId }: Run<In>,
  error: unknown,
  queue: Queue<In>,
  settlement: Settlement<In>,
  throttle: Throttle,
  maxPauseMs: number,
): void {
  const isPast = (deadlineAtMs: number, arrivedAtMs: number): boolean =>
    deadlineAtMs === Infinity ? throttle.pausedMsSince(arrivedAtMs) > maxPauseMs : deadlineAtMs <= throttle.resumesAtMs;
  const isOver = (chunk: Chunk<In>, index: number): boolean =>
    chunk.settlers[index] !== undefined &&
    ((chunk.putBacks?.[index] ?? 0) >= maxPutBacks ||
      isPast(chunk.deadlinesAtMs?.[index] ?? Infinity, chunk.arrivedAtMs(index)));
  const endIn = (chunk: Chunk<In>): void => {
    // Another caller of the same item may take the place of one who leaves.
    for (let i = 0; i < chunk.count; i++) while (isOver(chunk, i)) settlement.withdraw(chunk, i, error, "error");
  };
  // A signal may spare a call while it runs; now it waits again, and is withdrawn.
  for (let i = 0; i < batch.count; i++) {
    while (batch.settlers[i] !== undefined && batch.signals?.[i]?.aborted === true)
      settlement.withdraw(batch, i, batch.signals[i]!.reason, "aborted");
  }
  endIn(batch);
  queue.equal?.rejoin(batch);
  queue.putBack(batch, group, batchId);
  const isDue = queue.cancellation.nextDeadlineAtMs <= throttle.resumesAtMs;
  if (isDue || throttle.pausedMsSince(-Infinity) > maxPauseMs) queue.everyChunk(endIn);
}
