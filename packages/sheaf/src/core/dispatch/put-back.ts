import type { Batch, Entry } from "../queue/entry.ts";
import type { Queue } from "../queue/queue.ts";
import type { Throttle } from "./throttle.ts";

/** An item that comes back as often as this without a pause would run forever. */
const maxPutBacks = 1000;

/** A run that did not end. */
interface Unrun<In> {
  readonly batch: Batch<In>;
  readonly dispatched: { readonly batchId: number; readonly group: unknown };
}

/**
 * Puts the items of a batch that did not run back to the waiting ones. A call gets the error instead, whether its item ran or
 * only waited, if its deadline comes before the end of the pause, or if it has no deadline and has waited through pauses of
 * `maxPauseMs`.
 */
export function putBack<In>(
  run: Unrun<In>,
  error: unknown,
  queue: Queue<In>,
  throttle: Throttle,
  maxPauseMs: number,
): void {
  const { batch } = run;
  const isPast = (deadlineAtMs: number, arrivedAtMs: number): boolean =>
    deadlineAtMs === Infinity
      ? throttle.pausedMsSince(arrivedAtMs) >= maxPauseMs
      : deadlineAtMs <= throttle.resumesAtMs;
  const isOver = ({ settler, ties, terms }: Entry<In>): boolean =>
    settler !== undefined && ((ties?.putBacks ?? 0) >= maxPutBacks || isPast(terms.deadlineAtMs, terms.arrivedAtMs));
  const end = (entry: Entry<In>): void => {
    // Another caller of the same item may take the place of one who leaves.
    while (isOver(entry)) queue.cancellation.withdraw(entry, error, "error");
  };
  // A signal may spare a call while it runs; now it waits again, and is withdrawn.
  for (const entry of batch.entries)
    while (entry.settler !== undefined && entry.terms.signal?.aborted === true)
      queue.cancellation.withdraw(entry, entry.terms.signal.reason, "aborted");
  batch.entries.forEach(end);
  for (const entry of batch.entries) queue.cancellation.leftBehind(entry);
  queue.equal?.rejoin(batch);
  takeBack(queue, run);
  const isDue = queue.nextDeadlineAtMs <= throttle.resumesAtMs;
  if (isDue || throttle.pausedMsSince(-Infinity) >= maxPauseMs) [...queue.entries()].forEach(end);
}

/**
 * Moves the unsettled items of a batch that did not run back to the queue, each to its lane and ahead of later arrivals.
 */
function takeBack<In>(queue: Queue<In>, { batch, dispatched: { group: groupKey, batchId } }: Unrun<In>): void {
  const entries = batch.entries.filter(({ settler }) => settler !== undefined);
  entries.sort((a, b) => a.terms.arrivedAtMs - b.terms.arrivedAtMs);
  const group = queue.groupOf(groupKey);
  const last: (Entry<In> | undefined)[] = [];
  for (const entry of entries) {
    const { lane, terms } = entry;
    const laneQueue = group.laneQueue(lane);
    const ties = entry.tie();
    ties.putBacks++;
    ties.putBackFrom = batchId;
    queue.putBack(entry, laneQueue, laneQueue.firstAfter(terms.arrivedAtMs, batchId, last[lane]));
    last[lane] = entry;
  }
  queue.order?.putBack(entries);
}
