import { Chunk, type ItemRef } from "../queue/chunk.ts";
import type { Queue } from "../queue/queue.ts";
import type { Throttle } from "./throttle.ts";
import type { Run } from "./run.ts";

/** An item that comes back as often as this without a pause would run forever. */
const maxPutBacks = 1000;

/**
 * Puts the items of a batch that did not run back to the waiting ones. A call gets the error instead, whether its item ran or
 * only waited, if its deadline comes before the end of the pause, or if it has no deadline and has waited through pauses of
 * `maxPauseMs`.
 */
export function putBack<In>(
  run: Run<In>,
  error: unknown,
  queue: Queue<In>,
  throttle: Throttle,
  maxPauseMs: number,
): void {
  const { calls: batch } = run;
  const isPast = (deadlineAtMs: number, arrivedAtMs: number): boolean =>
    deadlineAtMs === Infinity
      ? throttle.pausedMsSince(arrivedAtMs) >= maxPauseMs
      : deadlineAtMs <= throttle.resumesAtMs;
  const isOver = (chunk: Chunk<In>, index: number): boolean =>
    chunk.settlers[index] !== undefined &&
    ((chunk.putBacks?.[index] ?? 0) >= maxPutBacks ||
      isPast(chunk.deadlinesAtMs?.[index] ?? Infinity, chunk.arrivedAtMs(index)));
  const endIn = (chunk: Chunk<In>): void => {
    // Another caller of the same item may take the place of one who leaves.
    for (let i = 0; i < chunk.count; i++)
      while (isOver(chunk, i)) queue.cancellation.withdraw(chunk, i, error, "error");
  };
  // A signal may spare a call while it runs; now it waits again, and is withdrawn.
  for (let i = 0; i < batch.count; i++) {
    while (batch.settlers[i] !== undefined && batch.signals?.[i]?.aborted === true)
      queue.cancellation.withdraw(batch, i, batch.signals[i]!.reason, "aborted");
  }
  endIn(batch);
  for (let i = 0; i < batch.count; i++) queue.cancellation.leftBehind(batch, i);
  queue.equal?.rejoin(batch);
  takeBack(queue, run);
  const isDue = queue.cancellation.nextDeadlineAtMs <= throttle.resumesAtMs;
  if (isDue || throttle.pausedMsSince(-Infinity) >= maxPauseMs) queue.everyChunk(endIn);
}

/**
 * Moves the unsettled items of a batch that did not run back to the queue, each to its lane and ahead of later arrivals.
 */
function takeBack<In>(queue: Queue<In>, { calls: batch, group: groupKey, batchId }: Run<In>): void {
  const { refs } = batch;
  const indices = [...batch.items.keys()].filter((index) => batch.settlers[index] !== undefined);
  indices.sort((a, b) => batch.arrivedAtMs(a) - batch.arrivedAtMs(b) || a - b);
  const group = queue.groupOf(groupKey);
  const last: (Chunk<In> | undefined)[] = [];
  const back: ItemRef<In>[] = [];
  queue.taken -= indices.length;
  for (const index of indices) {
    const lane = batch.lanes?.[index] ?? 1;
    if (lane === 2) queue.bulkTaken--;
    const laneQueue = group.laneQueue(lane);
    const epoch = batch.epochOf(index);
    const next = laneQueue.firstAfter(batch.arrivedAtMs(index), batchId);
    let to = last[lane];
    if (to === undefined || to.epoch !== epoch || to.next !== next || to.count >= queue.chunkSize) {
      last[lane] = to = new Chunk<In>(epoch, laneQueue);
      to.putBackFrom = batchId;
      laneQueue.insert(to, next);
    }
    queue.enters(batch, index, laneQueue);
    const at = to.count;
    const duplicates = refs?.[index]?.duplicates;
    const claim = batch.claims?.[index];
    if (refs?.[index] !== undefined) back.push(refs[index]);
    queue.transfer(batch, index, to);
    (to.putBacks ??= [])[at] = (batch.putBacks?.[index] ?? 0) + 1;
    if (claim === undefined) continue;
    const others = duplicates?.claims?.filter((_, i) => duplicates.settlers[i] !== undefined) ?? [];
    queue.tenants!.putBack(to, at, [claim, ...others.filter((other) => other !== undefined)]);
  }
  queue.order?.putBack(back);
}
