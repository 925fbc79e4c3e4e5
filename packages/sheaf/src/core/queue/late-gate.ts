import { choosesByWeight } from "../measure/learned-cost.ts";
import type { Admission } from "./admission.ts";
import type { Gate } from "./entrance.ts";
import type { Entry, Terms } from "./entry.ts";
import type { Queue } from "./queue.ts";
import type { BatcherStats } from "../contract/stats.ts";
import { type Lane, type Settings, capacityOf } from "../contract/settings.ts";
import {
  expectedByWeightMs,
  expectedLatencyMs,
  expectedNewestFirstMs,
  mayBeWithin,
} from "../measure/expected-latency.ts";
import type { CostModel } from "../../policies/cost-model.ts";
import { urgency } from "../../policies/overtaking.ts";

/** The runs in flight. */
interface Runs {
  restsMs(cost: CostModel, nowMs: number): readonly number[];
}

interface Overload {
  view(nowMs: number): BatcherStats["overload"] | undefined;
}

/** Waiting items looked at for an estimate. */
const maxScanned = 1024;

/**
 * The gate of `refuseLate`: refuses what would probably not be answered in time, judged by the last of `items`. A quick refusal helps a
 * caller more than a late answer, and a queue that is older than its deadlines serves no caller.
 */
export function lateGate<In, Out>(
  settings: Settings<In, Out>,
  admission: Admission<In>,
  queue: Queue<In>,
  cost: CostModel,
  dispatcher: Runs,
  overload: Overload | undefined,
): Gate<In> {
  /** Whether standing overload changes its place, and arrivals alone decide how far. */
  const goesNewestFirst = ({ keys }: Entry<In>, { lane }: Terms): boolean => {
    if (lane !== 1 || keys?.orderKey !== undefined || keys?.tenant !== undefined) return false;
    return !choosesByWeight(settings, cost) && queue.onlyGroup?.newestFirst === true;
  };

  /** Expected latency of a new item of `weight`; counts the items that would be served first. */
  const latencyMs = (weight: number, lane: Lane, nowMs: number, restsMs: readonly number[]): number => {
    let items = 0;
    let before = 0;
    let seen = 0;
    const loneMs = cost.of(1, weight, weight);
    const own = urgency(loneMs, 0);
    const byWeight = choosesByWeight(settings, cost);
    for (const entry of queue.entries()) {
      if (seen > maxScanned) break;
      if (entry.lane > lane) continue;
      seen++;
      const { weight: its, terms } = entry;
      if (byWeight && urgency(cost.of(1, its, its), nowMs - terms.arrivedAtMs) < own) continue;
      items++;
      before += its;
    }
    return expectedByWeightMs(cost, capacityOf(settings), { items, weight: before }, weight, restsMs);
  };

  return (items, terms, entry) => {
    const { lane, arrivedAtMs, deadlineAtMs } = terms;
    const { refuseLate = Infinity } = settings;
    const weight = entry?.weight;
    const tenant = entry?.keys?.tenant;
    const room = admission.roomOf(lane);
    if (refuseLate === Infinity || deadlineAtMs === Infinity || !room.hasRoomFor(tenant)) return undefined;
    const inLane = queue.ahead(lane) + (room.waiters?.items ?? 0);
    const ahead = tenant === undefined ? inLane : Math.min(inLane, queue.tenants!.ahead(tenant, items));
    const restsMs = dispatcher.restsMs(cost, arrivedAtMs);
    // With a slot free it goes at once: its run corrects an estimate that is too high.
    if (ahead === 0 && restsMs.length < settings.slots.limit) return undefined;
    const bySize = weight === undefined || cost.perWeightMs === 0;
    const inOrderMs = bySize
      ? expectedLatencyMs(cost, capacityOf(settings), ahead + items - 1, restsMs)
      : latencyMs(weight, lane, arrivedAtMs, restsMs);
    const standing = entry !== undefined && goesNewestFirst(entry, terms) && (overload?.view(arrivedAtMs) ?? null);
    const expectedMs =
      standing && inOrderMs !== undefined
        ? expectedNewestFirstMs(cost, capacityOf(settings), standing, inOrderMs, restsMs)
        : inOrderMs;
    const timeoutMs = Math.round((deadlineAtMs - arrivedAtMs) * 1000) / 1000;
    const limitMs = refuseLate * timeoutMs;
    if (expectedMs === undefined || expectedMs <= limitMs) return undefined;
    if (bySize && !standing && mayBeWithin(limitMs, cost, capacityOf(settings), ahead + items - 1, restsMs))
      return undefined;
    const why =
      `a result is expected after ${Math.round(expectedMs)} ms, too late for ${timeoutMs} ms (timeoutMs): ` +
      (standing ? "newer items will go before it" : `${ahead} items wait before it`) +
      ". Retry later, raise timeoutMs or add capacity.";
    return { why, details: { expectedMs, timeoutMs } };
  };
}
