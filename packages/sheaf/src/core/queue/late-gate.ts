import { choosesByWeight } from "../measure/learned-cost.ts";
import type { Admission } from "./admission.ts";
import type { Gate, Refusal } from "./entrance.ts";
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

/** The gate of `refuseLate`. */
export function lateGate<In, Out>(
  settings: Settings<In, Out>,
  admission: Admission<In>,
  queue: Queue<In>,
  cost: CostModel,
  dispatcher: Runs,
  overload: Overload | undefined,
): Gate<In> {
  const late = new LateGate(settings, admission, queue, cost, dispatcher, overload);
  return (items, terms, entry) => late.check(items, terms, entry);
}

class LateGate<In, Out> {
  readonly #settings: Settings<In, Out>;
  readonly #admission: Admission<In>;
  readonly #queue: Queue<In>;
  readonly #cost: CostModel;
  readonly #dispatcher: Runs;
  readonly #overload: Overload | undefined;

  constructor(
    settings: Settings<In, Out>,
    admission: Admission<In>,
    queue: Queue<In>,
    cost: CostModel,
    dispatcher: Runs,
    overload: Overload | undefined,
  ) {
    this.#settings = settings;
    this.#admission = admission;
    this.#queue = queue;
    this.#cost = cost;
    this.#dispatcher = dispatcher;
    this.#overload = overload;
  }

  /**
   * Refuses what would probably not be answered in time, judged by the last of `items`: a quick refusal helps a caller
   * more than a late answer, and a queue that is older than its deadlines serves no caller. `entry`: of a single item.
   */
  check(items: number, terms: Terms, entry: Entry<In> | undefined): Refusal | undefined {
    const { lane, arrivedAtMs, deadlineAtMs } = terms;
    const { refuseLate = Infinity } = this.#settings;
    const weight = entry?.weight;
    const tenant = entry?.keys?.tenant;
    const room = this.#admission.roomOf(lane);
    if (refuseLate === Infinity || deadlineAtMs === Infinity || !room.hasRoomFor(tenant)) return undefined;
    const inLane = this.#queue.ahead(lane) + (room.waiters?.items ?? 0);
    const ahead = tenant === undefined ? inLane : Math.min(inLane, this.#queue.tenants!.ahead(tenant, items));
    const restsMs = this.#dispatcher.restsMs(this.#cost, arrivedAtMs);
    // With a slot free it goes at once: its run corrects an estimate that is too high.
    if (ahead === 0 && restsMs.length < this.#settings.slots.limit) return undefined;
    const bySize = weight === undefined || this.#cost.perWeightMs === 0;
    const inOrderMs = bySize
      ? expectedLatencyMs(this.#cost, capacityOf(this.#settings), ahead + items - 1, restsMs)
      : this.#expectedMs(weight, lane, arrivedAtMs, restsMs);
    const overload =
      entry !== undefined && this.#goesNewestFirst(entry, terms) && (this.#overload?.view(arrivedAtMs) ?? null);
    const expectedMs =
      overload && inOrderMs !== undefined
        ? expectedNewestFirstMs(this.#cost, capacityOf(this.#settings), overload, inOrderMs, restsMs)
        : inOrderMs;
    const timeoutMs = Math.round((deadlineAtMs - arrivedAtMs) * 1000) / 1000;
    const limitMs = refuseLate * timeoutMs;
    if (expectedMs === undefined || expectedMs <= limitMs) return undefined;
    if (bySize && !overload && mayBeWithin(limitMs, this.#cost, capacityOf(this.#settings), ahead + items - 1, restsMs))
      return undefined;
    const why =
      `a result is expected after ${Math.round(expectedMs)} ms, too late for ${timeoutMs} ms (timeoutMs): ` +
      (overload ? "newer items will go before it" : `${ahead} items wait before it`) +
      ". Retry later, raise timeoutMs or add capacity.";
    return { why, details: { expectedMs, timeoutMs } };
  }

  /** Whether standing overload changes its place, and arrivals alone decide how far. */
  #goesNewestFirst({ keys }: Entry<In>, { lane }: Terms): boolean {
    if (lane !== 1 || keys?.orderKey !== undefined || keys?.tenant !== undefined) return false;
    return !choosesByWeight(this.#settings, this.#cost) && this.#queue.onlyGroup?.newestFirst === true;
  }

  /** Expected latency of a new item of `weight`; counts the items that would be served first. */
  #expectedMs(weight: number, lane: Lane, nowMs: number, restsMs: readonly number[]): number {
    let items = 0;
    let before = 0;
    let seen = 0;
    const loneMs = this.#cost.of(1, weight, weight);
    const own = urgency(loneMs, 0);
    const byWeight = choosesByWeight(this.#settings, this.#cost);
    for (const entry of this.#queue.entries()) {
      if (seen > maxScanned) break;
      if (entry.lane > lane) continue;
      seen++;
      const { weight: its, terms } = entry;
      if (byWeight && urgency(this.#cost.of(1, its, its), nowMs - terms.arrivedAtMs) < own) continue;
      items++;
      before += its;
    }
    return expectedByWeightMs(this.#cost, capacityOf(this.#settings), { items, weight: before }, weight, restsMs);
  }
}
