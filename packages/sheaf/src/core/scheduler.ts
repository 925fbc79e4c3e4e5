import type { BatchRecord, DispatchReason, QueueView } from "../policies/policy.ts";
import type { Admission } from "./admission.ts";
import type { Calls } from "./calls.ts";
import type { Clock } from "./clock.ts";
import type { Dispatcher } from "./dispatch.ts";
import { Forecast } from "./forecast.ts";
import type { Group } from "./group.ts";
import { GuardedPolicy } from "./guarded-policy.ts";
import { earliestDeadlineMs, everyLate } from "./late.ts";
import type { NextBatch, Preview } from "./next-batch.ts";
import type { Queue } from "./queue.ts";
import type { RateLimiter } from "./rate-limit.ts";
import type { Settings } from "./settings.ts";
import { StallWatch } from "./stall-watch.ts";

/** Batches that end without the event loop's turn (a synchronous batch function) may follow each other this long. */
const longestTurnMs = 10;
/** A timer shorter than this could come back before its moment by rounding alone, for ever. */
const shortestTimerMs = 0.001;
/** Of #tryGroup: a batch has started. */
const started = -1;

/** The parts that a scheduler drives. */
export interface SchedulerParts<In, Out> {
  readonly settings: Settings<In, Out>;
  readonly queue: Queue<In>;
  readonly next: NextBatch<In>;
  readonly calls: Calls<In>;
  readonly admission: Admission<In, Out>;
  readonly dispatcher: Dispatcher<In, Out>;
  readonly limiter: RateLimiter;
}

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
}

/**
 * Owns *when*: asks the policy whenever a slot is free and something waits, and keeps the timers.
 *
 * One loop, started with the batcher, awaits a promise that arrivals resolve. Its async context is that of
 * `createBatcher`, whoever wakes it, so batches and timers started there never inherit a caller's context.
 * A burst (everything that arrives before the loop gets its turn) shares one time stamp and one wake-up.
 */
export class Scheduler<In, Out> {
  /** Arrival time of the current burst. */
  stampMs = 0;
  /** No dispatch while false: the executor is not ready. */
  open = false;
  readonly #parts: SchedulerParts<In, Out>;
  readonly #clock: Clock;
  readonly #view: View = new View();
  /** From the first deadline on. */
  #forecast: Forecast | undefined = undefined;
  readonly #policy: GuardedPolicy;
  #wake: () => void = () => undefined;
  #bursting = false;
  #arrivals = 0;
  #stopped = false;
  #turnEndPending = false;
  #turnStartedAtMs = 0;
  #timerAtMs = Infinity;
  #cancelTimer: () => void = () => undefined;
  #deadlineAtMs = Infinity;
  #cancelDeadline: () => void = () => undefined;
  readonly #stallWatch: StallWatch;

  constructor(parts: SchedulerParts<In, Out>) {
    this.#parts = parts;
    this.#clock = parts.settings.clock;
    this.#policy = new GuardedPolicy(parts.settings.policy, parts.settings.name);
    this.#stallWatch = new StallWatch(parts.settings);
    void this.#loop();
  }

  /** Notes `count` items that are about to enter the queue; `stampMs` is their arrival time. */
  arriving(count: number): void {
    // Not every wake-up is an arrival: a burst that a flush or an abort began has no stamp yet.
    if (this.#arrivals === 0) {
      this.stampMs = this.#clock.now();
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

  /** A slot came free; called in the batcher's own context. A full batch goes at once, the rest at the turn's end. */
  freed(nowMs: number): void {
    this.#stallWatch.progressed();
    const { queue, settings } = this.#parts;
    if (queue.size >= settings.maxBatchSize && this.#isWithinTurn(nowMs)) this.#dispatchAll(nowMs);
    else this.#atTurnEnd(nowMs);
    this.#watchDeadlines();
    this.#watchStall();
  }

  observe(record: BatchRecord, nowMs: number): void {
    if (this.#parts.calls.watch.nextDeadlineMs < Infinity) this.#forecast ??= new Forecast();
    if (this.#forecast !== undefined) this.#foresee(this.#forecast, record);
    this.#policy.observe(record, nowMs);
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelTimer();
    this.#cancelDeadline();
    this.#stallWatch.stop();
    this.wake();
  }

  async #loop(): Promise<void> {
    while (!this.#stopped) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#bursting = false;
      if (this.#arrivals > 0) this.#reportArrivals();
      this.#atTurnEnd(this.stampMs);
      this.#watchDeadlines();
      this.#watchStall();
    }
  }

  #reportArrivals(): void {
    const arrivals = this.#arrivals;
    this.#arrivals = 0;
    const view = this.#fillView(this.stampMs);
    view.arrivals = arrivals;
    this.#policy.arrived(view);
    view.arrivals = 0;
  }

  /** At the end of the turn, so that whatever arrives in one turn of the event loop can share a batch. */
  #atTurnEnd(nowMs: number): void {
    const { queue, admission } = this.#parts;
    if (this.#turnEndPending || this.#stopped) return;
    if (queue.size === 0 && admission.door.waiters === 0) return;
    if (this.#freeSlots() <= 0 && !this.#mayGoAhead()) return;
    this.#requestTurnEnd(nowMs);
  }

  #requestTurnEnd(nowMs: number): void {
    this.#turnEndPending = true;
    this.#turnStartedAtMs = nowMs;
    this.#clock.after(0, () => {
      this.#turnEndPending = false;
      this.#dispatchAll(this.#clock.now());
    });
  }

  /** False once batches have followed each other for too long in one turn: timers and I/O must get theirs. */
  #isWithinTurn(nowMs: number): boolean {
    if (this.#turnEndPending) return nowMs - this.#turnStartedAtMs < longestTurnMs;
    this.#requestTurnEnd(nowMs);
    return true;
  }

  #freeSlots(): number {
    const { dispatcher, settings } = this.#parts;
    if (!this.open || this.#stopped || dispatcher.abandonedNow >= settings.concurrency) return 0;
    return settings.concurrency - dispatcher.inFlight;
  }

  /** Whether a full batch may be handed to a busy slot, to hide the time that it takes to wake up for the next. */
  #mayGoAhead(): boolean {
    const { dispatcher, settings, queue } = this.#parts;
    if (settings.ahead === 0 || queue.size < settings.maxBatchSize) return false;
    if (!this.open || this.#stopped || dispatcher.abandonedNow > 0) return false;
    return dispatcher.inFlight < settings.concurrency * (1 + settings.ahead);
  }

  #dispatchAll(nowMs: number): void {
    const { admission, queue } = this.#parts;
    admission.feed();
    while ((this.#freeSlots() > 0 ? queue.size > 0 : this.#mayGoAhead()) && this.#dispatchOne(nowMs)) {
      this.#stallWatch.progressed();
      admission.feed();
      // A batch function may have worked before it returned; where no slot is left nobody asks.
      if (this.#freeSlots() > 0) nowMs = this.#clock.now();
    }
    this.#watchDeadlines();
    this.#watchStall();
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
    if (againAtMs < this.#timerAtMs) this.#arm(againAtMs, nowMs);
    return false;
  }

  /** Starts the next batch of a group, or says when to ask again (`Infinity`: when something changes). */
  #tryGroup(group: Group<In>, nowMs: number): number {
    const { next, limiter, dispatcher, admission, settings } = this.#parts;
    const isAhead = this.#freeSlots() <= 0;
    const dropped = !isAhead && this.#forecast !== undefined && this.#dropHopeless(this.#forecast, group, nowMs);
    const preview = next.preview(group, nowMs);
    if (preview.waiting === 0) return Infinity;
    const capacity = Math.min(preview.capacity, limiter.maxItems, admission.maxQueueSize);
    preview.capacity = capacity;
    // Ahead go full batches only: a partial one goes on filling until a slot is free.
    if (isAhead && preview.waiting < capacity) return Infinity;
    const readyAtMs = limiter.readyAtMs(nowMs, Math.min(preview.waiting, capacity), preview.weight);
    if (readyAtMs > nowMs) return readyAtMs;
    const decision = this.#decide(group, preview, nowMs, dropped);
    if (isAhead && !("run" in decision && decision.run >= capacity)) return Infinity;
    if (!("run" in decision)) return decision.waitUntilMs;
    const batch = next.take(group, Math.min(decision.run, capacity), nowMs);
    if (batch === undefined) return Infinity;
    const weight = weightOf(batch.weights, batch.count, settings.batchWeight === "padded");
    limiter.spend(nowMs, batch.count, weight);
    group.held = false;
    dispatcher.start(batch, decision.reason, group.key, weight, nowMs);
    return started;
  }

  #foresee(forecast: Forecast, record: BatchRecord): void {
    forecast.observe(record);
    const { settings, admission } = this.#parts;
    const { maxQueueSize, timeoutMs, concurrency, maxBatchSize } = settings;
    if (maxQueueSize !== "auto" || timeoutMs === undefined) return;
    admission.maxQueueSize = forecast.queueBound(timeoutMs, concurrency, maxBatchSize) ?? admission.maxQueueSize;
  }

  /** Running what will be late anyway would make the next ones late too: under overload nobody would be in time. */
  #dropHopeless(forecast: Forecast, group: Group<In>, nowMs: number): boolean {
    const { queue, calls, settings } = this.#parts;
    const likelyMs = forecast.likelyMs(Math.min(group.waiting, settings.maxBatchSize));
    if (calls.watch.nextDeadlineMs >= nowMs + likelyMs) return false;
    const before = queue.size;
    everyLate(group, nowMs + likelyMs, (chunk, index) => calls.foreseen(chunk, index, likelyMs));
    return queue.size < before;
  }

  /** What the lanes, a flush, the policy, maxWaitMs and deadlines say, in this order of rank, of a group that could go now. */
  #decide(
    group: Group<In>,
    preview: Preview,
    nowMs: number,
    dropped: boolean,
  ): { run: number; reason: DispatchReason } | { waitUntilMs: number } {
    const { capacity, waiting, oldestAtMs, withImmediate } = preview;
    if (withImmediate) return { run: capacity, reason: "immediate" };
    const release = group.releaseReason();
    if (release !== undefined) return { run: capacity, reason: release };
    const view = this.#fillView(nowMs);
    view.waiting = waiting;
    // Bulk that others overtake is old: it must not pass for a batch that has been held long enough.
    const interactiveAtMs = group.line(1).oldestAtMs();
    view.oldestAtMs = interactiveAtMs < Infinity ? Math.max(oldestAtMs, interactiveAtMs) : oldestAtMs;
    view.maxBatchSize = capacity;
    view.freeSlots = Math.max(1, view.freeSlots); // ahead, the one that will be free next
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
    const lastChanceAtMs = dropped ? nowMs : this.#lastChanceAtMs(group, Math.min(waiting, capacity));
    if (decision === "wait" || nowMs >= lastChanceAtMs) return { run: capacity, reason: "hold" };
    return { waitUntilMs: Math.min(decision.waitUntilMs, windowEndsAtMs, lastChanceAtMs) };
  }

  /** When a held batch must go for its first deadline to be met; a timer may be a millisecond late. */
  #lastChanceAtMs(group: Group<In>, size: number): number {
    const likelyMs = this.#forecast?.likelyMs(size) ?? 0;
    return likelyMs > 0 ? earliestDeadlineMs(group) - likelyMs - 1 : Infinity;
  }

  #fillView(nowMs: number): View {
    const { queue, dispatcher, settings } = this.#parts;
    const view = this.#view;
    view.nowMs = nowMs;
    view.waiting = queue.size;
    view.oldestAtMs = nowMs;
    view.outstanding = queue.size + dispatcher.running;
    view.slots = settings.concurrency;
    view.freeSlots = Math.max(0, this.#freeSlots());
    view.maxBatchSize = settings.maxBatchSize;
    view.maxWaitMs = settings.maxWaitMs;
    return view;
  }

  /** An armed timer is never cleared because its reason went: on firing it only looks again. */
  #arm(atMs: number, nowMs: number): void {
    this.#cancelTimer();
    this.#timerAtMs = atMs;
    this.#cancelTimer = this.#clock.after(Math.max(shortestTimerMs, atMs - nowMs), () => {
      this.#timerAtMs = Infinity;
      this.#dispatchAll(this.#clock.now());
    });
  }

  #watchDeadlines(): void {
    const { calls, admission } = this.#parts;
    const atMs = Math.min(calls.watch.nextDeadlineMs, admission.door.earliestDeadlineMs);
    // A timer that nobody needs any more must not keep the process alive; one that is merely early may fire.
    if ((atMs >= this.#deadlineAtMs && atMs !== Infinity) || this.#stopped) return;
    this.#cancelDeadline();
    this.#deadlineAtMs = atMs;
    if (atMs === Infinity) return;
    this.#cancelDeadline = this.#clock.after(Math.max(shortestTimerMs, atMs - this.#clock.now()), () => {
      this.#deadlineAtMs = Infinity;
      const nowMs = this.#clock.now();
      calls.watch.expire(nowMs);
      admission.expire(nowMs);
      this.#watchDeadlines();
    });
  }

  #watchStall(): void {
    const { queue, dispatcher } = this.#parts;
    this.#stallWatch.look(queue.size > 0 && this.#freeSlots() <= 0, queue.size, dispatcher.inFlight);
  }
}

function clampSize(size: number, most: number): number {
  return size >= 1 ? Math.min(Math.floor(size), most) : 1;
}

function weightOf(weights: readonly number[] | undefined, count: number, padded: boolean): number {
  if (weights === undefined) return count;
  return padded
    ? count * weights.reduce((heaviest, weight) => Math.max(heaviest, weight), 0)
    : weights.reduce((sum, weight) => sum + weight, 0);
}
