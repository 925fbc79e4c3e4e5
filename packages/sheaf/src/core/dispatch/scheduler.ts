import type { BatchRecord } from "../../policies/policy.ts";
import type { Admission, Gate } from "../queue/admission.ts";
import type { Entrance } from "../queue/entrance.ts";
import type { Settlement } from "../queue/settlement.ts";
import { Alarm, type Clock } from "../runtime/clock.ts";
import { Decisions } from "./decision.ts";
import type { Dispatcher, RunFacts } from "./dispatcher.ts";
import { LoadShedding } from "./load-shedding.ts";
import type { Group } from "../queue/group.ts";
import type { Demand } from "../measure/demand.ts";
import type { BatchCost } from "../measure/learned-cost.ts";
import { sizeReasonOf, type NextBatch } from "./next-batch.ts";
import type { Epochs } from "../queue/epoch.ts";
import type { Queue } from "../queue/queue.ts";
import { isBoundToRequests } from "../runtime/globals.ts";
import type { Throttle } from "./rate-limit.ts";
import type { Settings } from "../contract/settings.ts";
import { StallWatch } from "./stall-watch.ts";
import type { StandingOverload } from "./standing-overload.ts";

/** Batches that end without a turn of the event loop (a synchronous batch function) may follow each other this long. */
const longestTurnMs = 10;
/** … and at most this many, where the clock stands still within a turn. */
const mostInTurn = 4096;
/** Result of #tryGroup: a batch has started. */
const started = -1;

/** The parts that a scheduler drives. */
export interface SchedulerParts<In, Out> {
  readonly settings: Settings<In, Out>;
  readonly queue: Queue<In>;
  readonly next: NextBatch<In>;
  readonly settlement: Settlement<In>;
  readonly admission: Admission<In, Out>;
  /** Made when the first call with options or keys comes. */
  readonly entrance: () => Entrance<In, Out>;
  readonly gates: readonly Gate<In>[];
  readonly dispatcher: Dispatcher<In, Out>;
  readonly throttle: Throttle;
  readonly cost: BatchCost;
  readonly epochs: Epochs;
  /** `undefined` where the order of arrival is always kept. */
  readonly overload: StandingOverload<In> | undefined;
  readonly demand: Demand;
}

/**
 * Owns *when*: asks the policy whenever a slot is free and something waits, and keeps the timers.
 *
 * One loop, started with the batcher, awaits a promise that arrivals resolve. Its async context is that of
 * `createBatcher`, whatever wakes it, so batches and timers started there never inherit a caller's context.
 * A burst (everything that arrives before the loop turns) shares one time stamp and one wake-up.
 * Where promises and timers end with the request that made them, each wake-up starts in the request that caused it.
 */
export class Scheduler<In, Out> {
  /** Arrival time of the current burst. */
  burstAtMs = 0;
  /** False until the executor is ready: nothing is dispatched. */
  open = false;
  readonly #parts: SchedulerParts<In, Out>;
  readonly #clock: Clock;
  readonly #shedding: LoadShedding<In, Out>;
  readonly #decisions: Decisions<In, Out>;
  readonly #deadlines: Alarm;
  /** Never turned off because its reason went: on ringing it only looks again. */
  readonly #nextLook: Alarm;
  readonly #stallWatch: StallWatch;
  #wake: () => void = () => undefined;
  #bursting = false;
  #arrivals = 0;
  #stopped = false;
  #turnEndPending = false;
  #turnStartedAtMs = 0;
  #freedInTurn = 0;

  constructor(parts: SchedulerParts<In, Out>, stallWarningMs: number) {
    this.#parts = parts;
    this.#clock = parts.settings.clock;
    const { settings, queue, next, settlement, admission, dispatcher, cost } = parts;
    this.#shedding = new LoadShedding(settings, settlement, admission, cost);
    this.#decisions = new Decisions(settings, queue, next, dispatcher, this.#shedding, cost);
    this.#nextLook = new Alarm(settings.clock, (nowMs) => this.#dispatchAll(nowMs));
    this.#deadlines = new Alarm(settings.clock, (nowMs) => {
      settlement.cancellation.expire(nowMs);
      admission.waiters?.expire(nowMs);
      this.#keepDeadlines();
    });
    this.#stallWatch = new StallWatch(settings, stallWarningMs, dispatcher);
    if (isBoundToRequests()) this.#wake = () => void this.#lookInThisRequest();
    else void this.#loop();
  }

  /** Notes `count` items that are about to enter the queue; `burstAtMs` is their arrival time. */
  arriving(count: number): void {
    // Not every wake-up is an arrival: a burst that a flush or an abort began has no stamp yet.
    if (this.#arrivals === 0) {
      this.burstAtMs = this.#clock.now();
      this.wake();
    }
    this.#arrivals += count;
  }

  /** Something changed: look again at the end of this turn. Safe to call from any async context. */
  wake(): void {
    if (this.#bursting) return;
    this.#bursting = true;
    this.#wake();
  }

  /** A limit that others share lets batches go earlier than it said; called in any async context. */
  look(): void {
    if (this.#parts.queue.size > 0) this.wake();
  }

  /**
   * A slot is free again; called in the batcher's own context. A full batch goes at once, the rest at the end of the
   * turn.
   */
  freed(nowMs: number): void {
    const { queue, settings } = this.#parts;
    if (queue.size >= settings.maxBatchSize && this.#isWithinTurn(nowMs)) return this.#dispatchAll(nowMs);
    this.#atTurnEnd(nowMs);
    this.#keepWatch();
  }

  /** A run has begun, as its executor reports from any async context: another may go ahead some time later. */
  began(): void {
    const { queue, settings } = this.#parts;
    if (queue.tenants !== undefined && settings.prefetch > 0) this.wake();
  }

  learn(run: RunFacts): void {
    this.#shedding.learn(run);
  }

  observe(record: BatchRecord, nowMs: number): void {
    this.#decisions.observe(record, nowMs);
  }

  stop(): void {
    this.#stopped = true;
    this.#nextLook.set(Infinity);
    this.#deadlines.set(Infinity);
    this.#stallWatch.set(Infinity);
    this.#parts.throttle.seat?.leave();
    this.wake();
  }

  async #loop(): Promise<void> {
    while (!this.#stopped) {
      const woken = new Promise<void>((resolve) => (this.#wake = resolve));
      // A policy or a clock called the batcher while it looked.
      if (this.#bursting) this.#wake();
      await woken;
      this.#look();
    }
  }

  async #lookInThisRequest(): Promise<void> {
    await Promise.resolve();
    // The timers of an earlier request ended with it; if it still runs, they only look once more.
    this.#turnEndPending = false;
    this.#nextLook.atMs = Infinity;
    this.#look();
  }

  #look(): void {
    this.#bursting = false;
    const arrivals = this.#arrivals;
    this.#arrivals = 0;
    if (arrivals > 0) this.#decisions.arrived(arrivals, this.burstAtMs, this.#freeSlots());
    this.#atTurnEnd(this.burstAtMs);
    this.#keepWatch();
  }

  /** At the end of the turn, so that everything that arrives in one turn of the event loop can share a batch. */
  #atTurnEnd(nowMs: number): void {
    const { queue, admission } = this.#parts;
    if (this.#turnEndPending || this.#stopped) return;
    if (queue.size === 0 && (admission.waiters?.size ?? 0) === 0) return;
    if (this.#freeSlots() <= 0 && !this.#mayGoAhead()) return;
    this.#requestTurnEnd(nowMs);
  }

  #requestTurnEnd(nowMs: number): void {
    this.#turnEndPending = true;
    this.#turnStartedAtMs = nowMs;
    this.#freedInTurn = 0;
    this.#clock.after(0, () => {
      this.#turnEndPending = false;
      this.#dispatchAll(this.#clock.now());
    });
  }

  /** False once batches have followed each other for too long in one turn: timers and I/O must run too. */
  #isWithinTurn(nowMs: number): boolean {
    if (this.#turnEndPending) return nowMs - this.#turnStartedAtMs < longestTurnMs && ++this.#freedInTurn < mostInTurn;
    this.#requestTurnEnd(nowMs);
    return true;
  }

  #freeSlots(): number {
    const { dispatcher, settings } = this.#parts;
    if (!this.open || this.#stopped || dispatcher.abandonedNow >= settings.concurrency) return 0;
    return settings.concurrency - dispatcher.inFlight;
  }

  /** Whether enough waits to hand it to a busy slot, to hide the time that it takes to wake up for the next batch. */
  #mayGoAhead(): boolean {
    const { dispatcher, settings, queue, cost } = this.#parts;
    if (settings.prefetch === 0 || queue.size < this.#decisions.aheadSize) return false;
    if (!this.open || this.#stopped || dispatcher.abandonedNow > 0) return false;
    if (dispatcher.inFlight >= settings.concurrency * (1 + settings.prefetch)) return false;
    if (queue.tenants === undefined) return true;
    // Late: a tenant that comes while a batch waits at a busy slot would wait for a whole run more.
    const atMs = dispatcher.aheadAtMs(cost);
    if (this.#clock.now() >= atMs) return true;
    if (atMs < this.#nextLook.atMs) this.#nextLook.set(atMs);
    return false;
  }

  #dispatchAll(nowMs: number): void {
    const { admission, queue } = this.#parts;
    admission.waiters?.admit();
    while ((this.#freeSlots() > 0 ? queue.size > 0 : this.#mayGoAhead()) && this.#dispatchOne(nowMs)) {
      admission.waiters?.admit();
      // A batch function may have worked before it returned; without a free slot the time is not needed.
      if (this.#freeSlots() > 0) nowMs = this.#clock.now();
    }
    this.#keepWatch();
  }

  /** Starts the next batch of the first group that may go now, or arms the timer for the earliest that will. */
  #dispatchOne(nowMs: number): boolean {
    const { queue } = this.#parts;
    let againAtMs = Infinity;
    const tryGroup = (group: Group<In>): boolean => {
      const atMs = this.#tryGroup(group, nowMs);
      if (atMs === started) return true;
      if (atMs < againAtMs) againAtMs = atMs;
      return false;
    };
    const only = queue.onlyGroup;
    if (only === undefined ? queue.everyGroup(nowMs, tryGroup) : tryGroup(only)) return true;
    if (againAtMs < this.#nextLook.atMs) this.#nextLook.set(againAtMs);
    return false;
  }

  /** Starts the next batch of a group, or says when to ask again (`Infinity`: when something changes). */
  #tryGroup(group: Group<In>, nowMs: number): number {
    const { queue, next, throttle, dispatcher, admission, settings, overload, demand } = this.#parts;
    const freeSlots = this.#freeSlots();
    const isAhead = freeSlots <= 0;
    const dropped = !isAhead && this.#shedding.shed(group, nowMs);
    group.newestFirst = overload !== undefined && overload.isNewestFirst(group, nowMs);
    const costs = this.#decisions.costs(nowMs, freeSlots);
    const { seat } = throttle;
    const room = seat?.room(nowMs);
    throttle.maxWeight = room?.weight ?? Infinity;
    const preview = next.preview(group, nowMs, costs);
    if (preview.waiting === 0) return Infinity;
    const capacity = Math.min(preview.capacity, room?.items ?? Infinity, admission.maxQueueSize);
    preview.capacity = capacity;
    // With fewer items waiting than the policy wants, the batch goes on filling until a slot is free.
    const enough = isAhead ? Math.min(capacity, this.#decisions.aheadSize) : 1;
    if (isAhead && (preview.isAlone || preview.waiting < enough)) return Infinity;
    const readyAtMs = seat?.readyAtMs(nowMs, Math.min(preview.waiting, capacity), preview.weight);
    if (readyAtMs !== undefined && readyAtMs > nowMs) return readyAtMs;
    const { version } = queue;
    const decision = this.#decisions.decide(group, preview, nowMs, freeSlots, dropped);
    // A policy has called the batcher: the limit was asked about the items that waited before.
    if (seat !== undefined && queue.version !== version) return nowMs;
    if (isAhead && !("run" in decision)) return Infinity;
    const goes = "run" in decision;
    // An item that runs alone is never held, not even behind others that are.
    const takesAlone = !goes && queue.alone > 0;
    const run = goes ? Math.min(decision.run, capacity) : 1;
    const batch = goes || takesAlone ? next.take(group, run, nowMs, costs, takesAlone) : undefined;
    if (batch === undefined) return goes ? Infinity : decision.askAgainAtMs;
    const weight = weightOf(batch.weights, batch.count, settings.batchWeight === "padded");
    seat?.spend(nowMs, batch.count, weight);
    group.held = false;
    const firstDeadlineAtMs = batch.deadlinesAtMs?.[0];
    if (firstDeadlineAtMs !== undefined) demand.due(firstDeadlineAtMs - batch.arrivedAtMs(0));
    const taken = { size: batch.count, asked: run, capacity, leftInGroup: group.waiting, left: queue.size };
    const sizeReason = takesAlone ? "alone" : sizeReasonOf(taken, preview, settings.maxBatchSize);
    dispatcher.start(batch, goes ? decision.reason : "full", sizeReason, group.key, weight, nowMs);
    return started;
  }

  /** Called whenever the earliest deadline may have changed, of calls that wait, run, or wait for room. */
  #keepDeadlines(): void {
    const { settlement, admission } = this.#parts;
    const atMs = Math.min(
      settlement.cancellation.nextDeadlineAtMs,
      admission.waiters?.earliestDeadlineAtMs ?? Infinity,
    );
    // A timer that is no longer needed must not keep the process alive; one that is merely early may fire.
    if ((atMs < this.#deadlines.atMs || atMs === Infinity) && !this.#stopped) this.#deadlines.set(atMs);
  }

  #keepWatch(): void {
    const { dispatcher, settings, overload } = this.#parts;
    this.#keepDeadlines();
    // A slot that is left free shows that the waiting items are held, not too many.
    if (!this.#turnEndPending && dispatcher.inFlight < settings.concurrency) overload?.slotIsIdle();
    const isBlocked = this.#parts.queue.size > 0 && this.#freeSlots() <= 0;
    if (!isBlocked) this.#stallWatch.set(Infinity);
    else if (this.#stallWatch.atMs === Infinity) this.#stallWatch.watchFrom(this.#clock.now());
  }
}

function weightOf(weights: readonly number[] | undefined, count: number, padded: boolean): number {
  if (weights === undefined) return count;
  return padded
    ? count * weights.reduce((heaviest, weight) => Math.max(heaviest, weight), 0)
    : weights.reduce((sum, weight) => sum + weight, 0);
}
