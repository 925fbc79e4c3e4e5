import type { RateLimitSeat, RateLimitStats, SharedRateLimit } from "../core/contract/rate-limit.ts";
import { Pauses } from "../core/dispatch/limits/pauses.ts";
import { Window } from "../core/dispatch/limits/window.ts";
import { systemClock, type Clock } from "../core/runtime/clock.ts";
import { Budget } from "./budget.ts";
import { Pace } from "./pace.ts";
import { ProcessShare, type DemandView, type RateShares } from "./process-share.ts";
import { RequestSizes, type RequestSize } from "./request-sizes.ts";
import type { ToldLimits } from "./told-limits.ts";
import { Turns, type Amounts, type Turn } from "./turns.ts";

/** A pause where a refusal names none: until the refused weight has flowed in, within these bounds, doubled each time. */
const shortestPauseMs = 250;
const longestPauseMs = 60_000;
/** Refusals without a success between them after which a request is taken to be more than the service's bucket holds. */
const refusalsForSize = 3;
/** The same where the service tells the rest of its limit. */
const toldRefusalsForSize = 8;
/** Where it does, refusals after which others must be using the same key: their part is found by the pace. */
const refusalsForOthers = 2;
/** A request that fills the service's bucket may be refused for an error of the estimate. */
const bucketShare = 0.9;
/** A refusal shows that too little was kept in hand. */
const excessOfRefusal = 0.1;
const mostExcess = 0.5;
/** Successes after which such a bound is doubled. */
const successesForSize = 50;

/** Numbers that were given; upper bounds of the limits that are learned. */
export interface GivenLimits {
  readonly runs?: number | undefined;
  readonly items?: number | undefined;
  readonly weight?: number | undefined;
  readonly perMs: number;
}

/** One request to the service, from its start. */
export interface SentRequest {
  readonly size: RequestSize;
  readonly sentAtMs: number;
  readonly number: number;
}

const kinds = ["runs", "items", "weight"] as const;
const noAmounts: Amounts = { runs: 0, items: 0, weight: 0 };

/** The limit of one key and model, which batchers share: given numbers, and lessons from the service's replies. */
export class LearnedRateLimit implements SharedRateLimit {
  readonly sizes: RequestSizes = new RequestSizes();
  /** Requests that the service took. */
  passes = 0;
  readonly #budgets: Readonly<Record<(typeof kinds)[number], Budget>>;
  /** Of the numbers that were given. Weights are estimates, which the service's counts correct: they have a bucket alone. */
  readonly #windows: Readonly<Partial<Record<(typeof kinds)[number], Window>>>;
  readonly #givenItems: number;
  readonly #clock: Clock;
  readonly #pace = new Pace();
  readonly #pauses = new Pauses();
  readonly #turns = new Turns();
  readonly #processShare: ProcessShare | undefined;
  /** Requests under way. */
  readonly #sent = new Set<SentRequest>();
  /** By what share true weights exceed their estimates, seldom more: so much is kept in hand. */
  #excess = 0;
  #numbers = 0;
  #lastTold = 0;
  #refusals = 0;
  #refusedInARow = 0;
  #refusedAtMs = -Infinity;
  #acceptedSince = 0;
  /** Of recent requests: batches are filled by weight. */
  #tokensPerByte = 0.25;
  /** Bound on a request where the service's bucket seems to hold less. */
  #maxWeight: number = Infinity;

  /** With `shares`, processes divide it. */
  constructor(given: GivenLimits, clock: Clock = systemClock, shares?: RateShares) {
    const { perMs } = given;
    this.#clock = clock;
    this.#givenItems = given.items ?? Infinity;
    this.#budgets = {
      runs: new Budget(given.runs, perMs),
      items: new Budget(given.items, perMs),
      weight: new Budget(given.weight, perMs),
    };
    const windows = (["runs", "items"] as const)
      .filter((kind) => given[kind] !== undefined)
      .map((kind) => [kind, new Window(given[kind]!, perMs)]);
    this.#windows = Object.fromEntries(windows) as Partial<Record<(typeof kinds)[number], Window>>;
    if (shares !== undefined) {
      const view = (): DemandView => this.#demand(clock.now());
      this.#processShare = new ProcessShare(shares, clock, view, (share) => this.#takeShare(share));
    }
  }

  join(wake: () => void): RateLimitSeat {
    return new Seat(this, this.#turns.join(wake));
  }

  leave(turn: Turn): void {
    this.#turns.leave(turn);
    if (this.#turns.size === 0) this.#processShare?.leave();
  }

  get maxItems(): number {
    return Math.max(1, Math.floor(Math.min(this.#givenItems, this.sizes.most.items)));
  }

  get maxWeight(): number {
    const { tokens, bytes } = this.sizes.most;
    const held = bucketShare * this.#budgets.weight.holds(Infinity);
    return Math.min(tokens, bytes * this.#tokensPerByte, this.#maxWeight, held);
  }

  readyAtMs(turn: Turn, nowMs: number, items: number, weight: number): number {
    this.#processShare?.touch(nowMs);
    const readyAtMs = this.#readyAtMs(nowMs, items, weight, this.#turns.ahead(turn, nowMs));
    this.#turns.look(turn, nowMs, readyAtMs, items, weight);
    return readyAtMs;
  }

  #readyAtMs(nowMs: number, items: number, weight: number, ahead: Amounts): number {
    let readyAtMs = this.#pauses.untilMs;
    for (const kind of kinds) {
      const inWindow = this.#windows[kind]?.readyAtMs(
        nowMs,
        { runs: 1, items, weight }[kind],
        this.#budgets[kind].share,
      );
      if (inWindow !== undefined) readyAtMs = Math.max(readyAtMs, inWindow);
      const amount = { runs: 1, items, weight: weight * (1 + this.#excess) }[kind];
      readyAtMs = Math.max(
        readyAtMs,
        this.#budgets[kind].readyAtMs(nowMs, amount, ahead[kind], this.#paceOf(kind, nowMs)),
      );
    }
    return readyAtMs;
  }

  spend(turn: Turn, nowMs: number, items: number, weight: number): void {
    this.#turns.went(turn, weight);
    this.#take(nowMs, { runs: 1, items, weight });
  }

  correct(nowMs: number, weight: number): void {
    this.#take(nowMs, { runs: 0, items: 0, weight });
    if (weight < 0) this.#turns.wake();
  }

  pause(nowMs: number, durationMs: number): void {
    this.#pauses.pause(nowMs, durationMs);
  }

  get pausedUntilMs(): number {
    return this.#pauses.untilMs;
  }

  pausedMsSince(atMs: number): number {
    return this.#pauses.since(atMs);
  }

  /** From when on a part of a batch may go, which a batcher has taken out of the queue: before those that wait. */
  partReadyAtMs(nowMs: number, items: number, weight: number): number {
    return this.#readyAtMs(nowMs, items, weight, noAmounts);
  }

  /** A request goes to the service. */
  sent(nowMs: number, size: RequestSize): SentRequest {
    const request = { size, sentAtMs: nowMs, number: ++this.#numbers };
    this.#sent.add(request);
    return request;
  }

  /** The service took a request; `tokens` as it counted them. */
  accepted(request: SentRequest, nowMs: number, tokens: number | undefined, told: ToldLimits | undefined): void {
    this.#sent.delete(request);
    this.passes++;
    const { size } = request;
    const weight = tokens ?? size.tokens;
    // Estimates are too high at first.
    this.sizes.passed({ ...size, tokens: Math.min(size.tokens, weight) });
    if (size.bytes > 0) this.#tokensPerByte += 0.1 * (weight / size.bytes - this.#tokensPerByte);
    this.#pace.accepted(weight);
    const excess = Math.min(mostExcess, weight / Math.max(1, size.tokens) - 1);
    this.#excess = excess > this.#excess ? this.#excess + 0.5 * (excess - this.#excess) : 0.98 * this.#excess;
    this.#refusedInARow = 0;
    if (this.#maxWeight < Infinity && ++this.#acceptedSince >= successesForSize) {
      this.#acceptedSince = 0;
      this.#maxWeight *= 2;
    }
    this.#learn(request, nowMs, told);
  }

  /** A request ended in another way. */
  ended(request: SentRequest, nowMs: number, told?: ToldLimits): void {
    this.#sent.delete(request);
    this.#learn(request, nowMs, told);
  }

  /**
   * The service refused a request for its rate.
   * @returns for how many milliseconds to send nothing.
   */
  refused(request: SentRequest, nowMs: number, told: ToldLimits | undefined, retryAfterMs: number | undefined): number {
    this.#sent.delete(request);
    this.#refusals++;
    // Requests that were under way when the first of them was refused are refused for the same reason.
    if (request.sentAtMs > this.#refusedAtMs) {
      this.#refusedInARow++;
      this.#refusedAtMs = nowMs;
    }
    const isTold = told !== undefined && this.#refusedInARow < refusalsForOthers;
    this.#excess = Math.min(mostExcess, this.#excess + excessOfRefusal);
    if (!isTold) this.#pace.refused(request.sentAtMs, nowMs);
    this.#learn(request, nowMs, told);
    if (this.#refusedInARow >= (told === undefined ? refusalsForSize : toldRefusalsForSize) && request.size.items > 1) {
      this.#maxWeight = Math.max(1, Math.min(this.#maxWeight, request.size.tokens / 2));
      this.#acceptedSince = 0;
    }
    const pace = this.#pace.at(nowMs);
    const flowsInMs = pace < Infinity ? request.size.tokens / pace : 1000;
    const doubled = 2 ** Math.min(10, this.#refusedInARow - 1);
    const namedMs = retryAfterMs ?? Math.min(longestPauseMs, Math.max(shortestPauseMs, flowsInMs) * doubled);
    // A service that names short waits and refuses all the same is asked less and less often.
    const pauseMs = this.#refusedInARow > 2 ? Math.max(namedMs, Math.min(longestPauseMs, (shortestPauseMs / 4) * doubled)) : namedMs; // prettier-ignore
    if (!isTold) this.#budgets.weight.refused(nowMs, request.size.tokens, nowMs + pauseMs, pace);
    return pauseMs;
  }

  stats(nowMs: number = this.#clock.now()): RateLimitStats {
    const figures = (kind: (typeof kinds)[number]): RateLimitStats["runs"] => {
      const pace = this.#paceOf(kind, nowMs);
      const perMinute = this.#budgets[kind].perMinute(pace);
      const { used } = this.#budgets[kind];
      if (perMinute === Infinity) return { perMinute: null, left: null, holds: null, used };
      return { perMinute, left: this.#budgets[kind].left(nowMs, pace), holds: this.#budgets[kind].holds(pace), used };
    };
    return {
      runs: figures("runs"),
      items: figures("items"),
      weight: figures("weight"),
      share: this.#budgets.weight.share,
      refused: this.#refusals,
      pausedMs: this.#pauses.spentMs(nowMs),
    };
  }

  #take(nowMs: number, amounts: Amounts): void {
    for (const kind of kinds) {
      this.#budgets[kind].spend(nowMs, amounts[kind], this.#paceOf(kind, nowMs));
      if (amounts[kind] !== 0) this.#windows[kind]?.add(nowMs, amounts[kind]);
    }
  }

  /** 429 alone says nothing of the unit: the pace is one of accepted weight. */
  #paceOf(kind: (typeof kinds)[number], nowMs: number): number {
    return kind === "weight" ? this.#pace.at(nowMs) : Infinity;
  }

  #learn(request: SentRequest, nowMs: number, told: ToldLimits | undefined): void {
    // An earlier reply that comes late says less than the last one did.
    if (told === undefined || request.number < this.#lastTold) return;
    this.#lastTold = request.number;
    let runs = 0;
    let weight = 0;
    for (const other of this.#sent) {
      runs++;
      weight += other.size.tokens;
    }
    this.#budgets.runs.told(told.runs, nowMs, runs, Infinity);
    this.#budgets.weight.told(told.weight, nowMs, weight, this.#pace.at(nowMs));
    if (this.#budgets.weight.isHalfFull(nowMs)) this.#pace.forget();
    this.#turns.wake();
  }

  #takeShare(share: number): void {
    for (const kind of kinds) this.#budgets[kind].share = share;
    this.#turns.wake();
  }

  #demand(nowMs: number): DemandView {
    const usedMs = Math.max(...kinds.map((kind) => this.#budgets[kind].usedMs));
    const isWaiting = this.#turns.areWaiting(nowMs);
    return { usedMs, isWaiting, isActive: isWaiting || this.#sent.size > 0 };
  }
}

/** One batcher's place. */
class Seat implements RateLimitSeat {
  readonly #limit: LearnedRateLimit;
  readonly #turn: Turn;

  constructor(limit: LearnedRateLimit, turn: Turn) {
    this.#limit = limit;
    this.#turn = turn;
  }

  get maxItems(): number {
    return this.#limit.maxItems;
  }

  get maxWeight(): number {
    return this.#limit.maxWeight;
  }

  readyAtMs(nowMs: number, items: number, weight: number): number {
    return this.#limit.readyAtMs(this.#turn, nowMs, items, weight);
  }

  spend(nowMs: number, items: number, weight: number): void {
    this.#limit.spend(this.#turn, nowMs, items, weight);
  }

  correct(nowMs: number, weight: number): void {
    this.#limit.correct(nowMs, weight);
  }

  pause(nowMs: number, durationMs: number): void {
    this.#limit.pause(nowMs, durationMs);
  }

  get pausedUntilMs(): number {
    return this.#limit.pausedUntilMs;
  }

  pausedMsSince(atMs: number): number {
    return this.#limit.pausedMsSince(atMs);
  }

  leave(): void {
    this.#limit.leave(this.#turn);
  }

  stats(nowMs: number): RateLimitStats {
    return this.#limit.stats(nowMs);
  }
}
