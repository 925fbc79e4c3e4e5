import type { Settings } from "../contract/settings.ts";
import type { Background } from "../pick/background.ts";
import type { Queue } from "../queue/queue.ts";
import type { Entry } from "../queue/entry.ts";
import type { Group } from "../queue/group.ts";
import { choosesByWeight, type LearnedCost } from "../measure/learned-cost.ts";

/**
 * Up to this mean deviation, one that scatters more is given up earlier. Beyond it items differ, or the machine is crowded:
 * the expected time of a batch says little of the next one, and most items that caution gives up would be in time.
 */
const steadyNoise = 1 / 15;

interface LateParts<In> {
  readonly settings: Pick<Settings<never, never>, "maxBatchSize" | "batchWeight">;
  readonly queue: Queue<In>;
  readonly cost: LearnedCost;
  readonly background: Background<In>;
}

/**
 * Drops waiting calls that the next batch would answer after their deadline, all but the last of the group, and says
 * whether there were any. Running items that will be late anyway would make the next ones late too: under overload no call would
 * be in time.
 */
export function shedLate<In>(parts: LateParts<In>, group: Group<In>, nowMs: number): boolean {
  const { settings, cost, background } = parts;
  const { waiting } = group;
  if (choosesByWeight(settings, cost)) shedByWeight(parts, group, nowMs);
  else {
    // Live calls go first: a backlog of bulk makes none of them late.
    const bulk = group.laneQueue(2).live;
    const most = settings.maxBatchSize;
    if (waiting > bulk) shedBySize(parts, group, nowMs, waiting - bulk, most, false);
    if (bulk > 0) shedBySize(parts, group, nowMs, bulk, Math.min(most, background.size(nowMs)), true);
  }
  return group.waiting < waiting;
}

/** Only items that would be late even alone: the next batch is composed so that no other is. */
function shedByWeight<In>({ queue: { cancellation }, cost }: LateParts<In>, group: Group<In>, nowMs: number): void {
  const likelyMs = (weight: number): number => cost.caution * cost.of(1, weight, weight);
  [...group.entries()].forEach((entry) => {
    const ownMs = likelyMs(entry.weight);
    while (group.waiting > 1 && isWaiting(entry) && entry.terms.deadlineAtMs <= nowMs + ownMs)
      cancellation.expired(entry, ownMs);
  });
}

/** All items but the most that one batch answers in time: those with the latest deadlines, and of one deadline the first. */
function shedBySize<In>(
  { queue: { cancellation, nextDeadlineAtMs }, cost }: LateParts<In>,
  group: Group<In>,
  nowMs: number,
  waiting: number,
  most: number,
  ofBulk: boolean,
): void {
  const { noise } = cost;
  const caution = cost.cautionAt(Math.min(noise, 2 * steadyNoise - noise));
  const runMs = (size: number): number => caution * cost.at(Math.min(size, most));
  const allMs = runMs(waiting);
  if (nextDeadlineAtMs >= nowMs + allMs) return;
  const late = [...group.entries()].filter(
    ({ lane, terms }) => (lane === 2) === ofBulk && terms.deadlineAtMs <= nowMs + allMs,
  );
  const lateAtMs = late.map(({ terms }) => terms.deadlineAtMs);
  lateAtMs.sort((a, b) => b - a);
  // Without the others the batch is smaller, and over earlier.
  const others = waiting - lateAtMs.length;
  let kept = 0;
  while (kept < lateAtMs.length && nowMs + runMs(others + kept + 1) < lateAtMs[kept]!) kept++;
  const droppedAtMs = lateAtMs[kept];
  if (droppedAtMs === undefined) return;
  const likelyMs = runMs(others + kept + 1);
  let sameKept = kept - lateAtMs.indexOf(droppedAtMs);
  for (const entry of late) {
    while (group.waiting > 1 && isWaiting(entry) && entry.terms.deadlineAtMs <= droppedAtMs) {
      if (entry.terms.deadlineAtMs === droppedAtMs && sameKept-- > 0) break;
      cancellation.expired(entry, likelyMs);
    }
  }
}

/** A policy or a clock that calls the batcher may have made it leave. */
const isWaiting = ({ settler, laneQueue }: Entry): boolean => settler !== undefined && laneQueue !== undefined;
