import type { CostModel } from "../policies/cost-model.ts";
import type { BatchRecord, DispatchReason, QueueView } from "../policies/policy.ts";
import type { Dispatcher } from "./dispatch.ts";
import type { Foresight } from "./foresight.ts";
import type { Group } from "./group.ts";
import { GuardedPolicy } from "./guarded-policy.ts";
import type { Preview } from "./next-batch.ts";
import type { Queue } from "./queue.ts";
import type { Settings } from "./settings.ts";

/** The one object that policies see, filled anew for every question. */
class View implements QueueView {
  nowMs = 0;
  waiting = 0;
  oldestAtMs = 0;
  outstanding = 0;
  slots = 0;
  freeSlots = 0;
  maxBatchSize = 0;
  maxWaitMs = Infinity;
  arrivals = 0;
  readonly cost: CostModel;

  constructor(cost: CostModel) {
    this.cost = cost;
  }
}

/** Whether a group that could go does: what the lanes, a flush, the policy, maxWaitMs and deadlines say, in this order of rank. */
export class Decisions<In, Out> {
  readonly #settings: Settings<In, Out>;
  readonly #queue: Queue<In>;
  readonly #dispatcher: Dispatcher<In, Out>;
  readonly #foresight: Foresight<In, Out>;
  readonly #policy: GuardedPolicy;
  readonly #view: View;

  constructor(
    settings: Settings<In, Out>,
    queue: Queue<In>,
    dispatcher: Dispatcher<In, Out>,
    foresight: Foresight<In, Out>,
    cost: CostModel,
  ) {
    this.#settings = settings;
    this.#queue = queue;
    this.#dispatcher = dispatcher;
    this.#foresight = foresight;
    this.#policy = new GuardedPolicy(settings.policy, settings.name);
    this.#view = new View(cost);
  }

  /** `arrivals` items have come in. */
  arrived(arrivals: number, nowMs: number, freeSlots: number): void {
    const view = this.#fillView(nowMs, freeSlots);
    view.arrivals = arrivals;
    this.#policy.arrived(view);
    view.arrivals = 0;
  }

  observe(record: BatchRecord, nowMs: number): void {
    this.#policy.observe(record, nowMs, this.#view.cost);
  }

  /** `dropped`: calls of the group have just been dropped as hopeless. */
  decide(
    group: Group<In>,
    preview: Preview,
    nowMs: number,
    freeSlots: number,
    dropped: boolean,
  ): { run: number; reason: DispatchReason } | { waitUntilMs: number } {
    const { capacity, waiting, oldestAtMs, withImmediate, isAlone } = preview;
    if (withImmediate) return { run: capacity, reason: "immediate" };
    const release = group.releaseReason();
    if (release !== undefined) return { run: capacity, reason: release };
    if (isAlone) return { run: capacity, reason: "full" };
    const view = this.#fillView(nowMs, Math.max(1, freeSlots)); // ahead, the one that will be free next
    view.waiting = waiting;
    // Bulk that others overtake is old: it must not pass for a batch that has been held long enough.
    const interactiveAtMs = group.line(1).oldestAtMs();
    view.oldestAtMs = interactiveAtMs < Infinity ? Math.max(oldestAtMs, interactiveAtMs) : oldestAtMs;
    view.maxBatchSize = capacity;
    const decision = this.#policy.decide(view);
    if (typeof decision === "object" && "run" in decision) {
      const run = clampSize(decision.run, Math.min(waiting, capacity));
      const full: DispatchReason = preview.closedByWeight ? "weight" : "full";
      return { run, reason: decision.reason ?? (run >= capacity ? full : group.held ? "hold" : "idle") };
    }
    const windowEndsAtMs = oldestAtMs + view.maxWaitMs;
    if (nowMs >= windowEndsAtMs) return { run: capacity, reason: "window" };
    group.held = true;
    if (decision === "wait" && !dropped) return { waitUntilMs: windowEndsAtMs };
    // Where some were dropped there is no time to hold the rest, or arrivals could take turns to be dropped for ever.
    const lastChanceAtMs = dropped ? nowMs : this.#foresight.lastChanceAtMs(group, Math.min(waiting, capacity));
    if (decision === "wait" || nowMs >= lastChanceAtMs) return { run: capacity, reason: "hold" };
    return { waitUntilMs: Math.min(decision.waitUntilMs, windowEndsAtMs, lastChanceAtMs) };
  }

  #fillView(nowMs: number, freeSlots: number): View {
    const view = this.#view;
    view.nowMs = nowMs;
    view.waiting = this.#queue.size;
    view.oldestAtMs = nowMs;
    view.outstanding = this.#queue.size + this.#dispatcher.running;
    view.slots = this.#settings.concurrency;
    view.freeSlots = Math.max(0, freeSlots);
    view.maxBatchSize = this.#settings.maxBatchSize;
    view.maxWaitMs = this.#settings.maxWaitMs;
    return view;
  }
}

function clampSize(size: number, most: number): number {
  return size >= 1 ? Math.min(Math.floor(size), most) : 1;
}
