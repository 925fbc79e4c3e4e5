import type { CostModel } from "../../policies/cost-model.ts";
import type { BatchRecord, DispatchReason, QueueView, Decision, Policy } from "../../policies/policy.ts";
import { choosesByWeight, type LearnedCost } from "../measure/learned-cost.ts";
import type { Executor } from "../contract/executor.ts";
import type { RateLimitSeat } from "../contract/rate-limit.ts";
import type { Background } from "../pick/background.ts";
import type { ConcurrencyLearner } from "./concurrency-learner.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { shedLate } from "./load-shedding.ts";
import type { Batch } from "../queue/entry.ts";
import type { Group } from "../queue/group.ts";
import type { Costs } from "../pick/composition.ts";
import { type NextBatch, sizeReasonOf } from "../pick/next-batch.ts";
import type { Preview } from "../pick/selection.ts";
import type { Queue } from "../queue/queue.ts";
import type { Settings } from "../contract/settings.ts";
import { describe } from "../../shared/describe.ts";
import { greedy } from "../../policies/greedy.ts";
import { warn } from "../runtime/warnings.ts";
import type { Statistics } from "../measure/stats.ts";
import type { Throttle } from "./throttle.ts";

/** Slots that a policy sees for `concurrency: Infinity`: what it computes with them stays finite. */
const mostSlots = 1_000_000;
/** Starts are paced while at least this many full batches wait: the next one, and one behind it. */
const batchesPaced = 2;

/** Result of `tryGroup`: a batch has started. */
export const started = -1;

/** What decides about the next batch. */
export interface Parts<In, Out> {
  readonly settings: Settings<In, Out>;
  readonly executor: Pick<Executor<In, Out>, "coreShortage"> | undefined;
  readonly queue: Queue<In>;
  readonly cost: LearnedCost;
  readonly background: Background<In>;
  readonly next: NextBatch<In>;
  readonly throttle: Throttle;
  readonly dispatcher: Dispatcher<In, Out>;
  readonly statistics: Statistics;
  /** Where the number of batches in flight is learned: a backlog keeps its pace. */
  readonly pace: Pick<ConcurrencyLearner, "nextStartAtMs" | "started"> | undefined;
}

/** Starts the next batch of a group where a slot, the rate limit, the pace and the policy let it go. */
export class Decisions<In, Out> {
  readonly #parts: Parts<In, Out>;
  readonly #policy: GuardedPolicy;
  readonly #nextMs: (size: number) => number;

  constructor(parts: Parts<In, Out>) {
    this.#parts = parts;
    this.#policy = new GuardedPolicy(parts.settings.policy, parts.settings.name);
    this.#nextMs = (size) => parts.next.nextMs(parts.cost, size);
  }

  /**
   * With every slot busy: from when on a batch may go ahead to one of them, to hide the time that it takes to wake up for the
   * next one. `-Infinity` for now, `Infinity` until something changes.
   */
  aheadAtMs(): number {
    const { settings, queue, dispatcher, cost } = this.#parts;
    if (settings.prefetch === 0 || queue.size < this.#aheadSize || !dispatcher.takesAhead) return Infinity;
    // Late: a tenant that comes while a batch waits at a busy slot would wait for a whole run more.
    return queue.tenants === undefined ? -Infinity : dispatcher.aheadAtMs(cost);
  }

  /** The earliest next start under a backlog, where starts are paced; otherwise `-Infinity`. */
  get pacedUntilMs(): number {
    const { settings, queue, dispatcher, pace } = this.#parts;
    // With no run in flight there is nothing to space out, and a pace learned from a stall of an hour would last.
    if (pace === undefined || dispatcher.inFlight === 0) return -Infinity;
    const isPaced = queue.size >= batchesPaced * settings.maxBatchSize;
    return isPaced ? pace.nextStartAtMs : -Infinity;
  }

  /** Whether bulk that waits beside live calls goes before them: the limit has held it for long. */
  #isBulkDue(group: Group<In>, seat: RateLimitSeat, nowMs: number): boolean {
    const { live } = group.laneQueue(2);
    if (live === 0 || group.firstLane === 2) return false;
    const { settings, queue } = this.#parts;
    const room = seat.room(nowMs, true);
    const items = Math.min(live, room.items, settings.maxBatchSize);
    const weight = settings.weigh === undefined ? items : queue.weight - queue.weightAhead(1);
    return seat.isBulkDue(nowMs, items, Math.min(room.weight, weight));
  }

  /** Starts the next batch of a group, or says when to ask again (`Infinity`: when something changes). */
  tryGroup(group: Group<In>, nowMs: number): number {
    const { seat } = this.#parts.throttle;
    const dropped = this.#parts.dispatcher.freeSlots > 0 && this.#shed(group, nowMs);
    const onlyBulk = seat !== undefined && this.#isBulkDue(group, seat, nowMs);
    return this.#tryLanes(group, nowMs, dropped, onlyBulk, true);
  }

  /** `mayTurn`: if order keys block everything that `onlyBulk` allows, the other lanes are tried. */
  #tryLanes(group: Group<In>, nowMs: number, dropped: boolean, onlyBulk: boolean, mayTurn: boolean): number {
    const { settings, queue, next, dispatcher, statistics, background, pace } = this.#parts;
    const { freeSlots } = dispatcher;
    const isAhead = freeSlots <= 0;
    const costs = this.#costs(nowMs, freeSlots);
    const { seat } = this.#parts.throttle;
    const isBulk = onlyBulk || group.firstLane === 2;
    const room = seat?.room(nowMs, isBulk);
    if (room !== undefined) next.boundWeight(room.weight);
    const fill = isBulk || group.laneQueue(2).live === 0 ? undefined : seat?.fill(nowMs);
    next.boundBulk(fill, onlyBulk);
    const preview = next.preview(group, nowMs, costs);
    if (preview.waiting === 0) {
      const isBounded = onlyBulk || fill !== undefined;
      return mayTurn && isBounded ? this.#tryLanes(group, nowMs, dropped, !onlyBulk, false) : Infinity;
    }
    const { pacedUntilMs } = this;
    // A backlog of bulk paces no live call.
    const isBacklog = group.firstLane === 2 || queue.ahead(1) >= batchesPaced * settings.maxBatchSize;
    if (pacedUntilMs > nowMs && isBacklog && !isAhead && !preview.withImmediate) return pacedUntilMs;
    const capacity = Math.min(preview.capacity, room?.items ?? Infinity, queue.maxSize);
    preview.capacity = capacity;
    // With fewer items waiting than the policy wants, the batch goes on filling until a slot is free.
    const enough = isAhead ? Math.min(capacity, this.#aheadSize) : 1;
    if (isAhead && (preview.isAlone || preview.waiting < enough)) return Infinity;
    // A live call that comes next would wait for it: a batch that has gone ahead is not taken back.
    const bulk = group.laneQueue(2).live;
    const live = group.waiting - bulk;
    const wanted = Math.min(settings.maxBatchSize, this.#aheadSize);
    if (isAhead && bulk > 0 && live < wanted && background.isBesideLive(nowMs)) return Infinity;
    const { first, weight: previewed } = preview;
    const readyAtMs = seat?.readyAtMs(nowMs, Math.min(preview.waiting, capacity), previewed, isBulk, first);
    if (readyAtMs !== undefined && readyAtMs > nowMs) return readyAtMs;
    const { version } = queue;
    const decision = this.#decide(group, preview, nowMs, freeSlots, dropped);
    // A policy has called the batcher: the limit was asked about the items that waited before.
    if (seat !== undefined && queue.version !== version) return nowMs;
    if (isAhead && !("run" in decision)) return Infinity;
    const goes = "run" in decision;
    // An item that runs alone is never held, not even behind others that are.
    const takesAlone = !goes && queue.alone > 0;
    const run = goes ? Math.min(decision.run, capacity) : 1;
    const batch = goes || takesAlone ? next.take(group, run, nowMs, costs, takesAlone) : undefined;
    if (batch === undefined) return goes ? Infinity : decision.askAgainAtMs;
    const { entries, weights, bulk: bulkTaken } = batch;
    const size = entries.length;
    const isPadded = settings.batchWeight === "padded";
    const weight = weights === undefined ? size : isPadded ? size * weights.heaviest : weights.sum;
    seat?.spend(nowMs, size, weight, bulkTaken / size, entries[0]!.item);
    this.#tookBulk(batch);
    pace?.started(nowMs);
    group.held = false;
    const { deadlineAtMs, arrivedAtMs } = entries[0]!.terms;
    statistics.due.learn(deadlineAtMs - arrivedAtMs);
    const taken = { size, asked: run, capacity, leftInGroup: group.waiting, left: queue.size };
    const sizeReason = takesAlone ? "alone" : sizeReasonOf(taken, preview, settings.maxBatchSize);
    const reason = goes ? decision.reason : "full";
    const batchId = dispatcher.started + 1;
    dispatcher.start(batch, { batchId, reason, sizeReason, weight, group: group.key, startedAtMs: nowMs });
    return started;
  }

  #tookBulk(batch: Batch<In>): void {
    const { queue, cost, background } = this.#parts;
    if (queue.bulkArrived === 0) return;
    const { entries, weights, bulk } = batch;
    queue.bulkTaken += bulk;
    const { length } = entries;
    background.took(batch, weights === undefined ? cost.at(length) : cost.of(length, weights.sum, weights.heaviest));
  }

  /** How the next batch is composed by the cost of its items; undefined where it goes in order of arrival. */
  #costs(nowMs: number, freeSlots: number): Costs | undefined {
    const { settings, cost } = this.#parts;
    if (!choosesByWeight(settings, cost)) return undefined;
    const targetMs = this.#policy.targetMs(this.#view(nowMs, freeSlots));
    return targetMs === undefined ? undefined : { cost, targetMs, caution: cost.caution };
  }

  /** Drops waiting calls of the group that would be late, and says whether there were any. */
  #shed(group: Group<In>, nowMs: number): boolean {
    return this.#parts.queue.nextDeadlineAtMs < Infinity && shedLate(this.#parts, group, nowMs);
  }

  /** Waiting items from which a batch goes ahead. */
  get #aheadSize(): number {
    return Math.min(this.#parts.settings.maxBatchSize, this.#policy.aheadSize);
  }

  /** `arrivals` items have arrived. */
  arrived(arrivals: number, nowMs: number, freeSlots: number): void {
    const view = this.#view(nowMs, freeSlots);
    view.arrivals = arrivals;
    this.#policy.arrived(view);
  }

  observe(record: BatchRecord, nowMs: number): void {
    this.#policy.observe(record, nowMs, this.#parts.cost);
  }

  /** `dropped`: calls of the group have just been shed. */
  #decide(
    group: Group<In>,
    preview: Preview,
    nowMs: number,
    freeSlots: number,
    dropped: boolean,
  ): { run: number; reason: DispatchReason } | { askAgainAtMs: number } {
    const { capacity, waiting, oldestAtMs, withImmediate, isAlone } = preview;
    if (withImmediate) return { run: capacity, reason: "immediate" };
    if (group.released > 0) return { run: capacity, reason: group.releasedBy };
    if (isAlone) return { run: capacity, reason: "full" };
    // Bulk that others overtake is old: it must not count as a batch that has been held long enough.
    const interactiveAtMs = group.laneQueue(1).oldestAtMs();
    const view = this.#view(nowMs, Math.max(1, freeSlots)); // for a prefetched batch, the slot that will be free next
    const deadlineAtMs = this.#firstDeadlineAtMs(group);
    view.waiting = waiting;
    view.deadlineAtMs = deadlineAtMs;
    view.coreShortage = this.#parts.executor?.coreShortage?.();
    view.oldestAtMs = interactiveAtMs < Infinity ? Math.max(oldestAtMs, interactiveAtMs) : oldestAtMs;
    view.maxBatchSize = capacity;
    const decision = this.#policy.decide(view);
    if (typeof decision === "object" && "run" in decision) {
      const run = clampSize(decision.run, Math.min(waiting, capacity));
      const full: DispatchReason = preview.closedByWeight ? "weight" : "full";
      return { run, reason: decision.reason ?? (run >= capacity ? full : group.held ? "hold" : "idle") };
    }
    const windowEndsAtMs = oldestAtMs + this.#parts.settings.maxWaitMs;
    if (nowMs >= windowEndsAtMs) return { run: capacity, reason: "window" };
    group.held = true;
    if (decision === "wait" && !dropped) return { askAgainAtMs: windowEndsAtMs };
    // After a drop there is no time to hold the rest, or arrivals could be dropped one after the other forever.
    const lastChanceAtMs = dropped
      ? nowMs
      : this.#lastChanceAtMs(deadlineAtMs, this.#nextMs(Math.min(waiting, capacity)));
    if (decision === "wait" || nowMs >= lastChanceAtMs) return { run: capacity, reason: "hold" };
    return { askAgainAtMs: Math.min(decision.askAgainAtMs, windowEndsAtMs, lastChanceAtMs) };
  }

  /** The first deadline of the group's next items, or a moment before it. */
  #firstDeadlineAtMs(group: Group<In>): number {
    const { settings, queue } = this.#parts;
    return queue.nextDeadlineAtMs === Infinity ? Infinity : group.firstDeadlineAtMs(settings.maxBatchSize);
  }

  /** When a held batch that takes `runMs` must go to meet this deadline; a timer may be a millisecond late. */
  #lastChanceAtMs(deadlineAtMs: number, runMs: number): number {
    const likelyMs = this.#parts.cost.caution * runMs;
    return likelyMs > 0 ? deadlineAtMs - likelyMs - 1 : Infinity;
  }

  #view(nowMs: number, freeSlots: number): { -readonly [Name in keyof QueueView]: QueueView[Name] } {
    const { settings, executor, queue, dispatcher, cost } = this.#parts;
    const { slots, prefetch, maxBatchSize, maxWaitMs, weigh } = settings;
    const waiting = queue.size;
    return {
      nowMs,
      waiting,
      weight: weigh === undefined ? waiting : queue.weight,
      oldestAtMs: nowMs,
      deadlineAtMs: Infinity,
      coreShortage: executor?.coreShortage && 0,
      outstanding: waiting + dispatcher.running,
      slots: Math.min(slots.limit, mostSlots),
      freeSlots: Math.max(0, freeSlots),
      prefetch,
      maxBatchSize,
      maxWaitMs,
      arrivals: 0,
      cost,
      nextMs: this.#nextMs,
    };
  }
}

function clampSize(size: number, most: number): number {
  return size >= 1 ? Math.min(Math.floor(size), most) : 1;
}

/** Guards a batcher against its policy: one that throws, or decides nothing, is replaced by greedy, with one warning. */
export class GuardedPolicy {
  #policy: Policy;
  readonly #batcherName: string;

  constructor(policy: Policy, batcherName: string) {
    this.#policy = policy;
    this.#batcherName = batcherName;
  }

  /** A moment in the past means now. */
  decide(view: QueueView): Decision {
    const decision = this.#ask((policy) => checkDecision(policy.decide(view))) ?? { run: view.waiting };
    if (decision === "wait" || "run" in decision || decision.askAgainAtMs > view.nowMs) return decision;
    return { run: view.waiting };
  }

  get aheadSize(): number {
    return this.#ask((policy) => policy.aheadSize) ?? Infinity;
  }

  /** Undefined where it leaves items in order of arrival. */
  targetMs(view: QueueView): number | undefined {
    return this.#ask((policy) => policy.targetMs?.(view));
  }

  arrived(view: QueueView): void {
    this.#ask((policy) => policy.arrived?.(view));
  }

  observe(record: BatchRecord, nowMs: number, cost: CostModel): void {
    this.#ask((policy) => policy.observe?.(record, nowMs, cost));
  }

  #ask<T>(question: (policy: Policy) => T): T | undefined {
    try {
      return question(this.#policy);
    } catch (error) {
      warn(`${this.#batcherName}: policy ${this.#policy.name} failed; dispatching greedily from now on.`, error);
      this.#policy = greedy();
      return undefined;
    }
  }
}

function checkDecision(decision: Decision): Decision {
  const { run, askAgainAtMs } = (decision ?? {}) as { readonly run?: unknown; readonly askAgainAtMs?: unknown };
  if (decision === "wait" || typeof run === "number" || (run === undefined && typeof askAgainAtMs === "number"))
    return decision;
  throw new TypeError(
    `decide's result must be { run: number }, { askAgainAtMs: number } or "wait", got ${describe(decision)}`,
  );
}
