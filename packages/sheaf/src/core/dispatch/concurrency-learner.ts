import type { Learner } from "./dispatcher.ts";
import type { LearnedConcurrency } from "./learned-concurrency.ts";
import type { RunFacts } from "./run.ts";

/**
 * Runs that fail in a row, as a share of the number: one bad item, which its caller sends again and again, fails one run at a time,
 * and others pass between.
 */
const failingShare = 0.25;
/** Where no run has ended for this many run times, none does. */
const runTimesToStandStill = 20;
/** A shorter run has no proportions: the clock's resolution. */
const shortestMs = 0.5;
/** Share of the mean time between two ends that must pass between two starts: below 1, so that more starts follow if more get done. */
const paceShare = 0.7;
/** Up to this many times the places, the number is about as many. */
const aboutAs = 2;
/** Up to this ratio of network time to fixed work, a run counts as having little network time. */
const mostUnshared = 0.25;
/** Timers are too late for a shorter pace. */
const shortestPaceMs = 2;
/** The mean time between two ends follows within this many runs. */
const runsOfPace = 8;

/** The parts of the batcher that say how things are when a run ends. */
interface Watched {
  readonly dispatcher: { readonly inFlight: number };
  readonly queue: { readonly size: number };
  readonly throttle: { readonly resumesAtMs: number };
  readonly overload: { readonly beganAtMs: number | undefined } | undefined;
  readonly settings: { readonly maxBatchSize: number };
}

/** Tells the learned concurrency of each run that says something about it, and spaces out starts under a backlog. */
export class ConcurrencyLearner implements Learner {
  readonly #learned: LearnedConcurrency;
  readonly #watched: Watched;
  /** Runs in a row that failed for a reason that may be an item's. */
  #unexplained = 0;
  /** Runs in a row at whose end a full batch waited. */
  #runsBehind = 0;
  /** The mean time between two of their ends lately: by Little's law the run time ÷ the number in flight. */
  #betweenEndsMs = 0;
  /** When a start that keeps the pace is due, after all so far. */
  #dueAtMs = -Infinity;

  constructor(learned: LearnedConcurrency, watched: Watched) {
    this.#learned = learned;
    this.#watched = watched;
  }

  learn(run: RunFacts, nowMs: number, hasFailed: boolean): void {
    const { outcome, runMs, inFlight = 1 } = run;
    if (hasFailed || this.#failTogether(outcome)) return this.#learned.failed(run, nowMs);
    // Bad items say nothing about the number in flight; the parts without them have been counted.
    if (outcome !== "ok" || !(runMs >= shortestMs)) return;
    const { dispatcher, queue, throttle, overload, settings } = this.#watched;
    const isTaken = dispatcher.inFlight >= this.#learned.limit;
    const isBehind = queue.size >= settings.maxBatchSize;
    this.#runsBehind = isBehind ? this.#runsBehind + 1 : 0;
    if (isBehind)
      this.#betweenEndsMs += (runMs / inFlight - this.#betweenEndsMs) / Math.min(this.#runsBehind, runsOfPace);
    this.#learned.ended(run, nowMs, {
      isShort: isTaken && queue.size > 0,
      isPressed: isTaken && isBehind,
      isPaused: throttle.resumesAtMs > nowMs,
      isOverloaded: overload?.beganAtMs !== undefined,
    });
  }

  stoodStill(nowMs: number, forMs: number): void {
    const { allRuns, meanRunMs } = this.#learned;
    if (allRuns > 0 && forMs > runTimesToStandStill * meanRunMs) this.#learned.failed({ startedAtMs: nowMs }, nowMs);
  }

  /** Whether runs fail, one after the other, for which single items might be to blame: then the service is. */
  #failTogether(outcome: RunFacts["outcome"]): boolean {
    if (outcome === "ok") this.#unexplained = 0;
    return outcome === "error" && ++this.#unexplained >= Math.max(2, failingShare * this.#learned.limit);
  }

  /**
   * The least time between two starts under a backlog, once it has lasted for about a run in every slot. Runs that start together also
   * end together, and so do the runs after them: the service idles while all of them are on the network, and slows down while all of
   * them are at work.
   */
  get #paceMs(): number {
    const paceMs = paceShare * this.#betweenEndsMs;
    return this.#runsBehind > this.#learned.limit && paceMs >= shortestPaceMs ? paceMs : 0;
  }

  /**
   * How early a start may come: one pace where the number is about that of the places, and runs have little network time. There runs of
   * different lengths happen to end together, and a place that waits gets nothing done. Elsewhere another run is at work in that place.
   */
  get #leadMs(): number {
    const { last } = this.#learned.contention;
    if (last === undefined || last.places === Infinity || last.unsharedMs > mostUnshared * last.fixedMs) return 0;
    return this.#learned.limit <= aboutAs * last.places ? this.#paceMs : 0;
  }

  /** The earliest next start under a backlog. */
  get nextStartAtMs(): number {
    return this.#dueAtMs - this.#leadMs;
  }

  started(nowMs: number): void {
    const paceMs = this.#paceMs;
    // A start owes one pace at most: what a stall taught is forgotten with it.
    this.#dueAtMs = Math.max(Math.min(this.#dueAtMs, nowMs + paceMs), nowMs) + paceMs;
  }
}
