import type { Terms } from "../queue/entry.ts";
import type { Admission } from "../queue/admission.ts";
import type { Group } from "../queue/group.ts";
import { Alarm, type Clock, isBoundToRequests } from "../runtime/runtime.ts";
import { type Decisions, type Parts, started } from "./decision.ts";
import { StallWatch } from "./stall-watch.ts";
import type { StandingOverload } from "../pick/standing-overload.ts";

/** Batches that end without a turn of the event loop (a synchronous batch function) may follow each other this long. */
const longestTurnMs = 10;
/** … and at most this many, where the clock stands still within a turn. */
const mostInTurn = 4096;

const termsAt = (
  arrivedAtMs: number,
  { timeoutMs = Infinity }: { readonly timeoutMs?: number | undefined },
): Terms => ({
  lane: 1,
  signal: undefined,
  deadlineAtMs: arrivedAtMs + timeoutMs,
  arrivedAtMs,
  tag: undefined,
  alone: false,
});

interface ScheduledParts<In, Out> extends Pick<Parts<In, Out>, "settings" | "queue" | "background" | "dispatcher"> {
  readonly admission: Admission<In>;
  /** `undefined` where the order of arrival is always kept. */
  readonly overload: StandingOverload<In> | undefined;
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
  /** How the calls without options of the current burst wait. */
  burst: Terms;
  readonly #parts: ScheduledParts<In, Out>;
  readonly #decisions: Decisions<In, Out>;
  readonly #clock: Clock;
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

  constructor(parts: ScheduledParts<In, Out>, decisions: Decisions<In, Out>, stallWarningMs: number) {
    const { settings, queue, admission, dispatcher } = parts;
    this.#parts = parts;
    this.#decisions = decisions;
    this.burst = termsAt(0, settings);
    this.#clock = settings.clock;
    this.#nextLook = new Alarm(settings.clock, (nowMs) => this.#dispatchAll(nowMs));
    this.#deadlines = new Alarm(settings.clock, (nowMs) => {
      queue.cancellation.expire(nowMs);
      this.#keepDeadlines();
    });
    this.#stallWatch = new StallWatch(settings, stallWarningMs, dispatcher, (error) => admission.refuseForNow(error));
    if (isBoundToRequests()) this.#wake = () => void this.#lookInThisRequest();
    else void this.#loop();
  }

  /** Notes `count` items that are about to enter the queue; `burst` has their arrival time. */
  arriving(count: number): void {
    // Not every wake-up is an arrival: a burst that a flush or an abort began has no stamp yet.
    if (this.#arrivals === 0) {
      this.burst = termsAt(this.#clock.now(), this.#parts.settings);
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
    if (this.#parts.queue.size >= this.#parts.settings.maxBatchSize && this.#isWithinTurn(nowMs))
      return this.#dispatchAll(nowMs);
    this.#atTurnEnd(nowMs);
    this.#keepWatch();
  }

  /** A run has begun, as its executor reports from any async context: another may go ahead some time later. */
  began(): void {
    if (this.#parts.queue.tenants !== undefined && this.#parts.settings.prefetch > 0) this.wake();
  }

  /** Why waiting calls do not start, where that is not for want of capacity. */
  get stallCause(): string | undefined {
    return this.#parts.dispatcher.freeSlots <= 0 ? this.#stallWatch.cause : undefined;
  }

  stop(): void {
    this.#stopped = true;
    this.#nextLook.set(Infinity);
    this.#deadlines.set(Infinity);
    this.#stallWatch.set(Infinity);
    this.#parts.dispatcher.stop();
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
    if (arrivals > 0) this.#decisions.arrived(arrivals, this.burst.arrivedAtMs, this.#parts.dispatcher.freeSlots);
    this.#atTurnEnd(this.burst.arrivedAtMs);
    this.#keepWatch();
  }

  /** At the end of the turn, so that everything that arrives in one turn of the event loop can share a batch. */
  #atTurnEnd(nowMs: number): void {
    if (this.#turnEndPending || this.#stopped) return;
    if (this.#parts.dispatcher.turns?.isWanted !== true) {
      if (this.#parts.queue.size === 0 && !this.#parts.admission.hasWaiters) return;
      if (this.#parts.dispatcher.freeSlots <= 0 && !this.#mayGoAhead()) return;
    }
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

  /** Whether a batch may go ahead to a busy slot now. */
  #mayGoAhead(): boolean {
    const atMs = this.#decisions.aheadAtMs();
    if (atMs === -Infinity) return true;
    if (atMs === Infinity) return false;
    if (this.#clock.now() >= atMs) return true;
    if (atMs < this.#nextLook.atMs) this.#nextLook.set(atMs);
    return false;
  }

  #dispatchAll(nowMs: number): void {
    this.#parts.admission.admit();
    this.#parts.dispatcher.turns?.give(nowMs, true);
    while (
      (this.#parts.dispatcher.freeSlots > 0 ? this.#parts.queue.size > 0 : this.#mayGoAhead()) &&
      this.#dispatchOne(nowMs)
    ) {
      this.#parts.admission.admit();
      // A batch function may have worked before it returned; without a free slot the time is not needed.
      if (this.#parts.dispatcher.freeSlots > 0) nowMs = this.#clock.now();
    }
    this.#parts.dispatcher.turns?.give(nowMs, false);
    this.#keepWatch();
  }

  /** Starts the next batch of the first group that may go now, or arms the timer for the earliest that will. */
  #dispatchOne(nowMs: number): boolean {
    let againAtMs = Infinity;
    const tryGroup = (group: Group<In>): boolean => {
      const atMs = this.#decisions.tryGroup(group, nowMs);
      if (atMs === started) return true;
      if (atMs < againAtMs) againAtMs = atMs;
      return false;
    };
    const only = this.#parts.queue.onlyGroup;
    if (only === undefined ? this.#parts.queue.everyGroup(this.#parts.background.isDue, tryGroup) : tryGroup(only))
      return true;
    if (againAtMs < this.#nextLook.atMs) this.#nextLook.set(againAtMs);
    return false;
  }

  #isPaced(): boolean {
    const { pacedUntilMs } = this.#decisions;
    return pacedUntilMs > -Infinity && pacedUntilMs > this.#clock.now();
  }

  /** Called whenever the earliest deadline may have changed, of calls that wait, run, or wait for room. */
  #keepDeadlines(): void {
    const atMs = this.#parts.queue.nextDeadlineAtMs;
    // A timer that is no longer needed must not keep the process alive; one that is merely early may fire.
    if ((atMs < this.#deadlines.atMs || atMs === Infinity) && !this.#stopped) this.#deadlines.set(atMs);
  }

  #keepWatch(): void {
    this.#keepDeadlines();
    // A slot that is left free shows that the waiting items are held, not too many; unless only the pace holds them.
    const hasIdleSlot = !this.#turnEndPending && this.#parts.dispatcher.inFlight < this.#parts.settings.slots.limit;
    if (this.#parts.overload !== undefined && hasIdleSlot && !this.#isPaced()) this.#parts.overload.wasIdle = true;
    if (this.#parts.admission.refusal?.isPassing === true && !this.#parts.dispatcher.isHung)
      this.#parts.admission.refusal = undefined;
    const isBlocked = this.#parts.queue.size > 0 && this.#parts.dispatcher.freeSlots <= 0;
    if (isBlocked) this.#stallWatch.keep();
    else this.#stallWatch.set(Infinity);
  }
}
