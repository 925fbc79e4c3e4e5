import type { Amounts, RateLimit, RateLimitFigures, RateLimitSeat, RateLimitStats, SharedRateLimit } from "../core/contract/rate-limit.ts"; // prettier-ignore
import { BulkShare, goesFirst, type BulkState, type Flow, type Left } from "../core/dispatch/bulk-share.ts";
import { RateLimiter, bulkOf, kinds, tighter, type Kind } from "../core/dispatch/rate-limit.ts";
import { systemClock, type Clock } from "../core/runtime/runtime.ts";
import { Budget } from "./budget.ts";
import { Pace } from "./pace.ts";
import { ProcessShare, type DemandView, type RateShares } from "./process-share.ts";
import { RequestSizes, type RequestSize } from "./request-sizes.ts";
import type { ToldLimits } from "./told-limits.ts";
import { Sharers, type Sharer } from "./sharers.ts";

/** The pause if a refusal names none. It doubles each time, and lasts at least until the refused weight has flowed in. */
const shortestPauseMs = 250;
const longestPauseMs = 8000;
const longestFlowMs = 15_000;
/** Consecutive refusals after which a request counts as larger than the service's bucket. */
const refusalsForSize = 3;
/** The same if the service reports what is left of its limit. */
const toldRefusalsForSize = 8;
/** If it does, refusals after which others must be using the same key; the pace then finds their part. */
const refusalsForOthers = 2;
/** A request that fills the service's bucket may be refused because of an estimation error. */
const bucketShare = 0.9;
/** A refusal shows that the reserve was too small. */
const excessOfRefusal = 0.1;
const mostExcess = 0.5;
/** Successes after which the bound on a request is doubled. */
const successesForSize = 50;
/** Limits count by the minute, and so does the need of live calls. */
const minuteMs = 60_000;

/** One request to the service, from its start. */
export interface SentRequest {
  readonly size: RequestSize;
  readonly sentAtMs: number;
  readonly number: number;
}

const noAmounts: Amounts = { runs: 0, items: 0, weight: 0 };

/** The limit of one key and model that batchers share: the given limits, and what the service's replies teach. */
export class LearnedRateLimit implements SharedRateLimit {
  readonly sizes: RequestSizes = new RequestSizes();
  passes = 0;
  readonly #given: RateLimiter;
  readonly #budgets: Readonly<Record<Kind, Budget>>;
  readonly #bulk: Readonly<Record<Kind, BulkShare>> = {
    runs: new BulkShare(minuteMs),
    items: new BulkShare(minuteMs),
    weight: new BulkShare(minuteMs),
  };
  readonly #usedByBulk: Record<Kind, number> = { runs: 0, items: 0, weight: 0 };
  readonly #clock: Clock;
  readonly #pace = new Pace();
  readonly #sharers = new Sharers();
  readonly #processShare: ProcessShare | undefined;
  readonly #sent = new Set<SentRequest>();
  /** The reserve: true weights seldom exceed their estimates by more than this share. */
  #excess = 0;
  #numbers = 0;
  #lastTold = 0;
  #refusals = 0;
  #refusedInARow = 0;
  #refusedAtMs = -Infinity;
  #acceptedSince = 0;
  /** Tokens per byte of recent requests, for batches that are filled by weight. */
  #tokensPerByte = 0.25;
  /** Bound on a request, if the service's bucket seems to hold less. */
  #maxWeight: number = Infinity;

  /** With `shares`, processes divide it. */
  constructor(given: readonly RateLimit[], clock: Clock = systemClock, shares?: RateShares) {
    this.#clock = clock;
    this.#given = new RateLimiter(given);
    const budgetOf = (kind: Kind): Budget =>
      new Budget(given.flatMap(({ [kind]: most, perMs }) => (most === undefined ? [] : [{ most, perMs }])));
    this.#budgets = { runs: budgetOf("runs"), items: budgetOf("items"), weight: budgetOf("weight") };
    if (shares !== undefined) {
      const view = (): DemandView => this.#demand(clock.now());
      this.#processShare = new ProcessShare(shares, clock, view, (share) => this.#takeShare(share));
    }
  }

  join(wake: () => void): RateLimitSeat {
    const sharer = this.#sharers.join(wake);
    const [maxWeight, resumesAtMs] = [() => this.maxWeight, () => this.resumesAtMs];
    return {
      get maxWeight() {
        return maxWeight();
      },
      get resumesAtMs() {
        return resumesAtMs();
      },
      room: (nowMs, isBulk) => this.room(nowMs, isBulk),
      fill: (nowMs) => this.fill(nowMs),
      readyAtMs: (nowMs, items, weight, isBulk) => this.#turnAtMs(sharer, nowMs, items, weight, isBulk),
      isBulkDue: (nowMs, items, weight) => this.isBulkDue(nowMs, items, weight),
      spend: (nowMs, items, weight, bulkRate) => this.#spend(sharer, nowMs, items, weight, bulkRate),
      correct: (nowMs, weight) => this.correct(nowMs, weight),
      pause: (nowMs, durationMs) => this.pause(nowMs, durationMs),
      pausedMsSince: (atMs) => this.pausedMsSince(atMs),
      stats: (nowMs) => this.stats(nowMs),
      leave: () => {
        this.#sharers.leave(sharer);
        if (this.#sharers.size === 0) this.#processShare?.leave();
      },
    };
  }

  get maxWeight(): number {
    const { tokens, bytes } = this.sizes.most;
    const held = bucketShare * this.#budgets.weight.holds(Infinity);
    return Math.min(this.#given.maxWeight, tokens, bytes * this.#tokensPerByte, this.#maxWeight, held);
  }

  room(nowMs: number, isBulk: boolean): Pick<Amounts, "items" | "weight"> {
    const { items, weight } = this.#given.room(nowMs, isBulk);
    const mostOf = (kind: Kind): number => {
      const flow = isBulk ? this.#flow(kind, nowMs) : undefined;
      return flow === undefined ? Infinity : this.#bulk[kind].most(flow);
    };
    return {
      items: Math.max(1, Math.floor(Math.min(items, this.sizes.most.items, mostOf("items")))),
      weight: Math.min(weight, this.maxWeight, mostOf("weight")),
    };
  }

  fill(nowMs: number): Pick<Amounts, "items" | "weight"> {
    const given = this.#given.fill(nowMs);
    const fillOf = (kind: "items" | "weight"): number => {
      const flow = this.#flow(kind, nowMs);
      if (flow === undefined) return given[kind];
      const left = this.#budgets[kind].left(nowMs, this.#paceOf(kind, nowMs));
      return Math.min(given[kind], this.#bulk[kind].fill(nowMs, left, flow, this.#left(kind, nowMs, noAmounts)));
    };
    return { items: fillOf("items"), weight: fillOf("weight") };
  }

  #turnAtMs(sharer: Sharer, nowMs: number, items: number, weight: number, isBulk: boolean): number {
    this.#processShare?.touch(nowMs);
    const yields = isBulk && !this.isBulkDue(nowMs, items, weight);
    const readyAtMs = this.#readyAtMs(nowMs, items, weight, this.#sharers.ahead(sharer, nowMs, yields), isBulk);
    this.#sharers.look(sharer, nowMs, readyAtMs, { items, weight, isBulk, yields });
    return readyAtMs;
  }

  #readyAtMs(nowMs: number, items: number, weight: number, ahead: Amounts, isBulk: boolean): number {
    const all = { runs: 1 + ahead.runs, items: items + ahead.items, weight: weight + ahead.weight };
    const amounts = this.#estimated(items, weight);
    return kinds.reduce(
      (latestAtMs, kind) => {
        const left = this.#left(kind, nowMs, ahead);
        const flow = isBulk ? this.#flow(kind, nowMs) : undefined;
        const amount = amounts[kind];
        const atMs = flow === undefined ? left.leftAtMs(amount) : this.#bulk[kind].readyAtMs(nowMs, amount, flow, left);
        return Math.max(latestAtMs, atMs);
      },
      this.#given.amountsReadyAtMs(nowMs, all, isBulk),
    );
  }

  isBulkDue(nowMs: number, items: number, weight: number): boolean {
    const amounts = this.#estimated(items, weight);
    const states = kinds.map((kind): BulkState => {
      const flow = this.#flow(kind, nowMs);
      if (flow === undefined) return "ready";
      return this.#bulk[kind].stateOf(nowMs, amounts[kind], flow, this.#left(kind, nowMs, noAmounts));
    });
    return goesFirst([...states, ...this.#given.bulkStates(nowMs, { runs: 1, items, weight })]);
  }

  #estimated(items: number, weight: number): Amounts {
    return { runs: 1, items, weight: weight * (1 + this.#excess) };
  }

  /** What is left after the amounts that others get first. */
  #left(kind: Kind, nowMs: number, ahead: Amounts): Left {
    const pace = this.#paceOf(kind, nowMs);
    return {
      leftAtMs: (amount) => this.#budgets[kind].readyAtMs(nowMs, amount, ahead[kind], pace),
      // A budget fills continuously.
      neededFor: () => 0,
    };
  }

  /** Undefined if no limit of this kind is known. */
  #flow(kind: Kind, nowMs: number): Flow | undefined {
    return this.#budgets[kind].flow(this.#paceOf(kind, nowMs));
  }

  #spend(sharer: Sharer, nowMs: number, items: number, weight: number, bulkRate: number): void {
    this.#sharers.went(sharer, weight);
    this.#given.spend(nowMs, items, weight, bulkRate);
    const all = { runs: 1, items, weight };
    const bulk = bulkOf(all, bulkRate);
    for (const kind of kinds) {
      this.#usedByBulk[kind] += bulk[kind];
      this.#bulk[kind].spend(nowMs, all[kind] - bulk[kind], bulk[kind], this.#flow(kind, nowMs));
    }
    this.#take(nowMs, all);
  }

  correct(nowMs: number, weight: number): void {
    this.#given.correct(nowMs, weight);
    this.#take(nowMs, { runs: 0, items: 0, weight });
    if (weight < 0) this.#sharers.wake();
  }

  pause(nowMs: number, durationMs: number): void {
    this.#given.pauses.pause(nowMs, durationMs);
  }

  get resumesAtMs(): number {
    return this.#given.resumesAtMs;
  }

  pausedMsSince(atMs: number): number {
    return this.#given.pausedMsSince(atMs);
  }

  /** When a part of a batch that has already left the queue may go: before items that still wait. */
  partReadyAtMs(nowMs: number, items: number, weight: number): number {
    return this.#readyAtMs(nowMs, items, weight, noAmounts, false);
  }

  sent(nowMs: number, size: RequestSize): SentRequest {
    const request = { size, sentAtMs: nowMs, number: ++this.#numbers };
    this.#sent.add(request);
    return request;
  }

  /** Records that the service accepted a request; `tokens` is its own count. */
  accepted(request: SentRequest, nowMs: number, tokens: number | undefined, told: ToldLimits | undefined): void {
    this.#sent.delete(request);
    this.passes++;
    const { size } = request;
    const weight = tokens ?? size.tokens;
    this.sizes.passed(size);
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

  /** Records any other end of a request. */
  ended(request: SentRequest, nowMs: number, told?: ToldLimits): void {
    this.#sent.delete(request);
    this.#learn(request, nowMs, told);
  }

  /** Records that the service refused a request for its rate. @returns the pause in milliseconds. */
  refused(request: SentRequest, nowMs: number, told: ToldLimits | undefined, retryAfterMs: number | undefined): number {
    this.#sent.delete(request);
    this.#refusals++;
    // Requests that were in flight at an earlier refusal are refused for the same reason and do not count.
    if (request.sentAtMs > this.#refusedAtMs) {
      this.#refusedInARow++;
      this.#refusedAtMs = nowMs;
    }
    const isTold = told !== undefined && this.#refusedInARow < refusalsForOthers;
    this.#excess = Math.min(mostExcess, this.#excess + excessOfRefusal);
    if (!isTold) this.#pace.refused(request.sentAtMs, nowMs);
    if (told === undefined) this.#given.refused(nowMs);
    this.#learn(request, nowMs, told);
    if (this.#refusedInARow >= (told === undefined ? refusalsForSize : toldRefusalsForSize)) {
      // If a single text is refused too, the size is not the reason.
      const isOther = request.size.items === 1 || this.#pace.isHelpless;
      this.#maxWeight = isOther ? Infinity : Math.min(this.#maxWeight, request.size.tokens / 2);
      this.#acceptedSince = 0;
    }
    const pace = this.#pace.at(nowMs);
    const flowsInMs = pace < Infinity ? Math.min(longestFlowMs, request.size.tokens / pace) : 0;
    const doubledMs = (ms: number): number => Math.min(longestPauseMs, ms * 2 ** Math.min(10, this.#refusedInARow - 1));
    const namedMs = retryAfterMs ?? Math.max(flowsInMs, doubledMs(flowsInMs > 0 ? shortestPauseMs : 1000));
    // A service that names short waits and still refuses is asked less and less often.
    const pauseMs = this.#refusedInARow > 2 ? Math.max(namedMs, doubledMs(shortestPauseMs / 4)) : namedMs;
    if (!isTold) this.#budgets.weight.refused(nowMs, request.size.tokens, nowMs + pauseMs, pace);
    return pauseMs;
  }

  stats(nowMs: number = this.#clock.now()): RateLimitStats {
    const figures = (kind: Kind): RateLimitFigures => {
      const given = this.#given.figures(kind, nowMs);
      const pace = this.#paceOf(kind, nowMs);
      const budget = this.#budgets[kind];
      const perMinute = budget.perMinute(pace);
      return perMinute === Infinity ? given : tighter(given, { perMinute, left: budget.left(nowMs, pace), holds: budget.holds(pace) }); // prettier-ignore
    };
    return {
      ...this.#given.stats(nowMs),
      runs: figures("runs"),
      items: figures("items"),
      weight: figures("weight"),
      refused: this.#refusals,
    };
  }

  #take(nowMs: number, amounts: Amounts): void {
    for (const kind of kinds) this.#budgets[kind].spend(nowMs, amounts[kind], this.#paceOf(kind, nowMs));
  }

  /** A 429 does not say which limit was hit; the pace is measured in accepted weight. */
  #paceOf(kind: Kind, nowMs: number): number {
    return kind === "weight" ? this.#pace.at(nowMs) : Infinity;
  }

  #learn(request: SentRequest, nowMs: number, told: ToldLimits | undefined): void {
    // A late reply to an earlier request is outdated.
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
    this.#sharers.wake();
  }

  #takeShare(share: number): void {
    this.#given.share = share;
    for (const kind of kinds) this.#budgets[kind].share = share;
    this.#sharers.wake();
  }

  #demand(nowMs: number): DemandView {
    const lane = (isBulk: boolean): DemandView["live"] => {
      const used = (kind: Kind): number => (isBulk ? this.#usedByBulk[kind] : this.#given.used[kind] - this.#usedByBulk[kind]); // prettier-ignore
      return {
        usedMs: Math.max(...kinds.map((kind) => this.#budgets[kind].usedMs(used(kind)))),
        isWaiting: this.#sharers.areWaiting(nowMs, isBulk),
      };
    };
    const [live, bulk] = [lane(false), lane(true)];
    const bursts = kinds.map((kind) => this.#bulk[kind].burst(nowMs) / this.#budgets[kind].holds(this.#paceOf(kind, nowMs))); // prettier-ignore
    return {
      live,
      bulk,
      burst: Math.max(this.#given.burst(nowMs), ...bursts),
      isActive: live.isWaiting || bulk.isWaiting || this.#sent.size > 0,
    };
  }
}
