import { choosesByWeight } from "../measure/learned-cost.ts";
import type { Admission } from "./admission.ts";
import type { Arrival, Gate, Refusal, Terms } from "./entrance.ts";
import type { Queue } from "./queue.ts";
import type { Dispatcher } from "../dispatch/dispatcher.ts";
import type { StandingOverload } from "../dispatch/standing-overload.ts";
import { type Lane, type Settings, capacityOf } from "../contract/settings.ts";
import {
  expectedByWeightMs,
  expectedLatencyMs,
  expectedNewestFirstMs,
  mayBeWithin,
} from "../measure/expected-latency.ts";
import type { CostModel } from "../../policies/cost-model.ts";
import { urgency } from "../../policies/overtaking.ts";

type Runs = Pick<Dispatcher<never, never>, "restsMs">;
type Overload = Pick<StandingOverload<never>, "view">;

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
  return (items, terms, arrival) => late.check(items, terms, arrival);
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
   * more than a late answer, and a queue that is older than its deadlines serves no caller. `arrival`: of a single item.
   */
  check(items: number, terms: Terms, arrival: Arrival<In> | undefined): Refusal | undefined {
    const { lane, arrivedAtMs, deadlineAtMs } = terms;
    const { refuseLate = Infinity } = this.#settings;
    const { weight, tenant } = arrival ?? {};
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
      arrival !== undefined && this.#goesNewestFirst(arrival, terms) && (this.#overload?.view(arrivedAtMs) ?? null);
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
  #goesNewestFirst({ orderKey, tenant }: Arrival<In>, { lane }: Terms): boolean {
    if (lane !== 1 || orderKey !== undefined || tenant !== undefined) return false;
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
    this.#queue.everyChunk((chunk) => {
      if (chunk.laneQueue!.lane > lane || seen > maxScanned) return;
      for (let i = chunk.head; i < chunk.count; i++) {
        if (chunk.settlers[i] === undefined) continue;
        seen++;
        const its = chunk.weights![i]!;
        if (byWeight && urgency(this.#cost.of(1, its, its), nowMs - chunk.arrivedAtMs(i)) < own) continue;
        items++;
        before += its;
      }
    });
    return expectedByWeightMs(this.#cost, capacityOf(this.#settings), { items, weight: before }, weight, restsMs);
  }
}
