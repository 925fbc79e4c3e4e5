import type { ConcurrencyCause } from "../contract/stats.ts";
import { firstConcurrency } from "../contract/options.ts";
import type { RunFacts } from "./run.ts";
import { Contention, elasticity, type ContentionFit } from "../measure/contention.ts";

/** Most batches in flight, however well it goes: sockets and memory have an end. */
export const mostConcurrency = 256;
/** Runs that succeeded before the number grows, and at least half of them under each number. */
const leastRuns = 8;
/** Up to here longer runs are worth it: four fifths of what is added to a run is queueing; while full batches wait, nine tenths. */
const mostAtEase = 0.8;
const mostPressed = 0.9;
/** Share of runs that must end while a full batch waits. */
const pressedShare = 0.5;
/** Below it runs hardly get longer: the number doubles. */
const free = 0.2;
const nearlyFree = 0.5;
/** Clearly above 1, where more runs in flight get less done. */
const lessDone = 1.02;
/** Runs to wait after a probe that did not pay; twice as many after each. */
const firstPause = 16;
const longestPause = 1024;
/** Runs that all met the same number before fewer are tried; four times as many each time. */
const firstLook = 12;
const longestLook = 2048;
const lookAt = 0.67;
/** Later looks only refresh what is known: far fewer would cost too much. */
const lookAgainAt = 0.79;
const lookedBelow = 0.8;
/** Levels that differ by less say nothing about how runs slow each other down. */
const apart = 1.4;
/** A number this much above the right one is near enough. */
const nearEnough = 1.1;
/** No probing after a failure. */
const afterFailureMs = 60_000;
/** The number that was tried then is tried again after this long; after twice as long each time, up to an hour. */
const longestMs = 3_600_000;
/** A number fails at once, or something else has failed. */
const runsBlamed = 2;
/** Clearly below a number that has worked, more are tried after so many runs and so long, whatever the pause. */
const regainRuns = 64;
const regainMs = 8000;
/** Runs between two reviews of a limit that is stable. */
const longestInterval = 16;
/** The batcher's state when a run ends. */
export interface BatcherState {
  /** No slot is free, and an item waits. */
  readonly isShort: boolean;
  /** No slot is free, and a full batch waits. */
  readonly isPressed: boolean;
  /** Nothing is dispatched for a while: the number stays. */
  readonly isPaused: boolean;
  /** During standing overload full batches wait at any limit: it falls only if fewer runs get more done. */
  readonly isOverloaded: boolean;
}

/**
 * Learns how many batches may be in flight, from runs alone. It climbs only while full batches wait and no slot is free, as long as
 * runs do not get longer, and falls when they wait for each other on the other side.
 */
export class LearnedConcurrency {
  limit: number;
  cause: ConcurrencyCause = "start";
  readonly contention: Contention = new Contention();
  readonly #start: number;
  #changedAtMs = -Infinity;
  allRuns = 0;
  /** Runs under this limit. */
  #runs = 0;
  /** Those at whose end no slot was free: an item waited (short), or a full batch (pressed). */
  #shortRuns = 0;
  #pressedRuns = 0;
  /** Those that met others. */
  #crowdedRuns = 0;
  #runsToReview = leastRuns;
  #reviewEvery = 2;
  /** The number that was tried last, and for how many runs none is tried again. */
  #probed = 0;
  #runsToProbe = 0;
  #probeEvery = firstPause;
  #quietEndsAtMs = -Infinity;
  meanRunMs = 0;
  /** The number before the last rise, 0 after a fall. */
  #risenFrom = 0;
  /** A higher number than `ceiling` has failed: none is tried until then. */
  #ceiling = Infinity;
  #ceilingMs = afterFailureMs;
  #ceilingEndsAtMs = -Infinity;
  /** The most runs in flight that hardly got longer, and when they last did not. */
  #worked = 0;
  #workedAtMs = -Infinity;
  /** The number before fewer were tried, and for how many runs fewer are not tried again. */
  #limitBefore = 0;
  #runsToLook = firstLook;
  #lookEvery = firstLook;
  /** Runs have become slower, and no lower limit has been tried since. */
  #isSlower = false;
  #wasOverloaded = false;
  /** Runs have stood in a queue on the other side: from now on the number climbs in smaller steps. */
  #hasFallen = false;
  constructor(start: number = firstConcurrency) {
    this.limit = this.#start = start;
  }

  /** A batch ended, or a part of a bisected one passed. */
  ended({ startedAtMs, runMs, size, weights, inFlight = 1 }: RunFacts, nowMs: number, now: BatcherState): void {
    // Began under another limit, it tells what runs cost but not how it goes now.
    const isOwn = startedAtMs >= this.#changedAtMs;
    this.allRuns++;
    this.meanRunMs += (runMs - this.meanRunMs) / Math.min(this.allRuns, leastRuns);
    this.contention.observe(inFlight, weights?.sum || size, runMs);
    if (!isOwn) return;
    this.#runs++;
    if (now.isPressed) this.#pressedRuns++;
    if (now.isShort) this.#shortRuns++;
    if (inFlight > 1.05) this.#crowdedRuns++;
    this.#runsToProbe--;
    this.#runsToLook--;
    this.#startOver(now.isOverloaded);
    if (--this.#runsToReview > 0 || now.isPaused) return;
    // Runs that meet no other have nothing to tell.
    if (this.#shortRuns + this.#crowdedRuns > 0) this.#decide(nowMs, now.isOverloaded);
    this.#runsToReview = Math.ceil(this.#reviewEvery);
    this.#reviewEvery = Math.min(longestInterval, 1.5 * this.#reviewEvery);
  }

  /** What was tried in vain may pay once the service has changed, or so many more calls come that it is overloaded. */
  #startOver(isOverloaded: boolean): void {
    const { change } = this.contention;
    if (change !== 0 || (isOverloaded && !this.#wasOverloaded)) this.#tryAgain();
    this.#wasOverloaded = isOverloaded;
    if (change > 0) {
      this.#isSlower = true;
      this.#runsToLook = this.#lookEvery = firstLook;
    }
    this.contention.change = 0;
  }

  #tryAgain(): void {
    this.#runsToProbe = 0;
    this.#probeEvery = firstPause;
  }

  /** A run was rejected and not put back, or exceeded runTimeoutMs. */
  failed({ startedAtMs }: Pick<RunFacts, "startedAtMs">, nowMs: number): void {
    this.#quietEndsAtMs = nowMs + afterFailureMs;
    // Of several that fail together only the first counts. What a batcher had before it learned anything is safe.
    if (startedAtMs < this.#changedAtMs || this.limit <= this.#start) return;
    if (this.#risenFrom > 0 && this.#runs < Math.max(2 * leastRuns, runsBlamed * this.limit)) {
      this.#ceilingMs = this.#ceiling === Infinity ? afterFailureMs : Math.min(longestMs, 2 * this.#ceilingMs);
      this.#ceiling = Math.max(this.#start, this.#risenFrom);
      this.#ceilingEndsAtMs = nowMs + this.#ceilingMs;
    }
    this.#set(Math.max(this.#start, this.limit / 2), "failure", nowMs);
  }

  #set(limit: number, cause: ConcurrencyCause, nowMs: number): void {
    const next = Math.max(1, Math.min(mostConcurrency, Math.round(limit)));
    if (next === this.limit) return;
    this.#risenFrom = next > this.limit ? this.limit : 0;
    this.limit = next;
    this.cause = cause;
    this.#changedAtMs = nowMs;
    this.#runs = this.#pressedRuns = this.#shortRuns = this.#crowdedRuns = 0;
    this.#runsToReview = Math.min(4, next);
    this.#reviewEvery = Math.max(2, next / 4);
  }

  #decide(nowMs: number, isOverloaded: boolean): void {
    const { limit } = this;
    const contention = this.contention;
    const fit = contention.fit(limit);
    if (fit === undefined) return;
    const isPressed = this.#pressedRuns > pressedShare * this.#runs;
    const size = contention.sizeAbove(0.6 * limit) ?? 1;
    const most = isPressed ? mostPressed : mostAtEase;
    const target = targetOf(fit, size, most);
    const isKnown = contention.most > apart * contention.least;
    const cost = elasticity(fit, limit, size);
    if (isKnown && cost < nearlyFree && limit > this.#start && this.#runs >= regainRuns) {
      this.#worked = Math.max(this.#worked, Math.min(limit, contention.most));
      this.#workedAtMs = nowMs;
    }
    const mayFall = !isOverloaded || cost > 1 || this.#probed === limit;
    if (isKnown && limit > nearEnough * target && mayFall) {
      if (this.#probed === limit) this.#probeFailed();
      this.#hasFallen = true;
      return this.#set(Math.max(target, limit / 2), "queue", nowMs);
    }
    if (this.allRuns < leastRuns || this.#runs < Math.max(4, limit / 2)) return;
    if (this.#limitBefore > 0) {
      const before = this.#limitBefore;
      this.#limitBefore = 0;
      if (target >= 0.9 * before) return this.#set(before, "demand", nowMs);
    }
    // Up to the number that it began with, any item that waits will do: a fall that was wrong must not last.
    const mayRise = isPressed || (limit < this.#start && this.#shortRuns > pressedShare * this.#runs);
    const highest = Math.min(
      isPressed ? mostConcurrency : this.#start,
      nowMs < this.#ceilingEndsAtMs ? this.#ceiling : mostConcurrency,
    );
    // Where no run has met clearly fewer, the places found are only the most that there can be.
    const isOpen = contention.least > lookedBelow * Math.min(fit.places, limit);
    if (
      (this.#isSlower || !((isPressed || isOverloaded) && cost < nearlyFree)) &&
      limit > 1 &&
      isOpen &&
      this.#crowdedRuns > 0.8 * this.#runs &&
      this.#runsToLook <= 0
    ) {
      const share = this.#lookEvery === firstLook ? lookAt : lookAgainAt;
      this.#runsToLook = this.#lookEvery = Math.min(longestLook, 4 * this.#lookEvery);
      this.#limitBefore = limit;
      this.#isSlower = false;
      return this.#set(Math.floor(share * limit), "probe", nowMs);
    }
    if (limit > this.#ceiling && nowMs - this.#changedAtMs > afterFailureMs) this.#ceiling = Infinity;
    if (!mayRise || nowMs < this.#quietEndsAtMs) return;
    // As many have run before, and did not wait for each other.
    const proven = Math.min(target, contention.most, highest);
    if (limit < 0.95 * proven) return this.#set(Math.min(proven, 2 * limit), "demand", nowMs);
    // The last try has paid.
    if (this.#probed === limit && cost < nearlyFree && this.#runs >= 2 * leastRuns) this.#tryAgain();
    const isRegaining = this.#isToRegain(nowMs);
    if ((this.#runsToProbe > 0 && !isRegaining) || limit >= highest) return;
    if (isRegaining) contention.forgetAbove(limit);
    if (cost < most) {
      if (cost > nearlyFree && this.#runs < Math.max(2 * leastRuns, limit)) return;
      this.#probed = Math.ceil(limit * (cost < free && !this.#hasFallen ? 2 : cost < nearlyFree ? 1.5 : 1.25));
    } else {
      this.#probeFailed();
      // Where more in flight get less done, a try costs most.
      if (cost > lessDone) this.#probeFailed();
      this.#probed = Math.ceil(1.25 * limit);
    }
    this.#probed = Math.min(this.#probed, highest);
    this.#set(this.#probed, "demand", nowMs);
  }

  /** A number far above this one has worked within the hour: the service may have recovered. */
  #isToRegain(nowMs: number): boolean {
    return (
      this.limit < lookAt * this.#worked &&
      nowMs - this.#workedAtMs < longestMs &&
      nowMs - this.#changedAtMs >= regainMs &&
      this.#runs >= regainRuns
    );
  }

  #probeFailed(): void {
    this.#probeEvery = Math.min(longestPause, 2 * this.#probeEvery);
    this.#runsToProbe = this.#probeEvery;
  }
}

/** The largest number at which waiting on the other side is not yet nearly all that one more run adds. */
function targetOf(fit: ContentionFit, size: number, most: number): number {
  let target = fit.places;
  while (target < mostConcurrency && elasticity(fit, 1.02 * target, size) < most) target *= 1.06;
  return Math.min(mostConcurrency, target);
}
