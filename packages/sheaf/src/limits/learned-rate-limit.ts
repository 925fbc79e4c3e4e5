import type { Amounts, RateLimit, RateLimitFigures, RateLimitSeat, RateLimitStats, SharedRateLimit } from "../core/contract/rate-limit.ts"; // prettier-ignore
import { BulkShare, goesFirst, type BulkState, type Flow, type Left } from "../core/dispatch/bulk-share.ts";
import { RateLimiter, kinds, tighter, type Kind } from "../core/dispatch/rate-limit.ts";
import { systemClock, type Clock } from "../core/runtime/runtime.ts";
import { Budget } from "./budget.ts";
import { Pace } from "./pace.ts";
import { ProcessShare, type DemandView, type RateShares } from "./process-share.ts";
import { RequestSizes, type RequestSize } from "./request-sizes.ts";
import type { ToldLimits } from "./told-limits.ts";
import { Sharers, type Ahead, type Sharer } from "./sharers.ts";

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
/** Requests in flight at first, while nothing is known of the service's limits. */
const firstAtOnce = 8;
/** Calls that wait look at the limit again after this time, if no reply has woken them. */
const lookAgainMs = 5000;
/** Limits count by the minute, and so does the need of live calls. */
const minuteMs = 60_000;

/** What a service may limit; the weight is that of input and output together. */
const allKinds = [...kinds, "input", "output"] as const;
type AnyKind = (typeof allKinds)[number];
type AllAmounts = Readonly<Record<AnyKind, number>>;

const withInput = (amounts: Ahead): AllAmounts => ({ ...amounts, input: amounts.weight - amounts.output });
const byKind = <T>(of: (kind: AnyKind) => T): Record<AnyKind, T> =>
  ({ runs: of("runs"), items: of("items"), weight: of("weight"), input: of("input"), output: of("output") }); // prettier-ignore

/** One request to the service, from its start. */
export interface SentRequest {
  readonly size: RequestSize;
  /** Tokens of the answer, out of those in `size`. */
  readonly output: number;
  /** Output tokens that the service counts only as they come, because the request sets no maximum for it to reserve. */
  readonly due: number;
  readonly sentAtMs: number;
  readonly number: number;
}

const noAmounts: AllAmounts = { runs: 0, items: 0, weight: 0, input: 0, output: 0 };

/** The limit of one key and model that batchers share: the given limits, and what the service's replies teach. */
export class LearnedRateLimit implements SharedRateLimit {
  readonly sizes: RequestSizes = new RequestSizes();
  passes = 0;
  readonly #given: RateLimiter;
  readonly #budgets: Readonly<Record<AnyKind, Budget>>;
  readonly #bulk: Readonly<Record<AnyKind, BulkShare>> = byKind(() => new BulkShare(minuteMs));
  readonly #used: Record<AnyKind, number> = { ...noAmounts };
  readonly #usedByBulk: Record<AnyKind, number> = { ...noAmounts };
  readonly #clock: Clock;
  readonly #pace = new Pace();
  readonly #sharers = new Sharers();
  readonly #processShare: ProcessShare | undefined;
  readonly #sent = new Set<SentRequest>();
  /** Accepted, while their answers are still on the way: a service counts an answer as it comes. */
  readonly #answering = new Set<SentRequest>();
  /** The reserve: true weights seldom exceed their estimates by more than this share. */
  #excess = 0;
  #numbers = 0;
  #lastTold = 0;
  #refusals = 0;
  #refusedInARow = 0;
  #passesAtRefusal = 0;
  /** What was still to be counted at the first refusal after a success. */
  #due = 0;
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
    const givenOf =
      (kind: AnyKind) =>
      ({ [kind as Kind]: most, perMs }: RateLimit) =>
        most === undefined ? [] : [{ most, perMs }];
    this.#budgets = byKind((kind) => new Budget(given.flatMap(givenOf(kind))));
    if (shares !== undefined) {
      const view = (): DemandView => this.#demand(clock.now());
      this.#processShare = new ProcessShare(shares, clock, view, (share) => this.#takeShare(share));
    }
  }

  /** `outputOf`: of the weight of a batch of one, by its item, what is output. */
  join(wake: () => void, outputOf: (item: unknown) => number = () => 0): RateLimitSeat {
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
      readyAtMs: (nowMs, items, weight, isBulk, first) => this.#turnAtMs(sharer, nowMs, items, weight, isBulk, outputOf(first)), // prettier-ignore
      isBulkDue: (nowMs, items, weight) => this.isBulkDue(nowMs, items, weight),
      spend: (nowMs, items, weight, bulkRate, first) => this.#spend(sharer, nowMs, items, weight, bulkRate, outputOf(first)), // prettier-ignore
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

  #turnAtMs(sharer: Sharer, nowMs: number, items: number, weight: number, isBulk: boolean, output: number): number {
    this.#processShare?.touch(nowMs);
    const yields = isBulk && !this.isBulkDue(nowMs, items, weight);
    const ahead = withInput(this.#sharers.ahead(sharer, nowMs, yields));
    const readyAtMs = this.#readyAtMs(nowMs, { items, weight, output }, ahead, isBulk);
    const atMs = readyAtMs > nowMs || output === 0 || !this.#isFeelingItsWay(nowMs) ? readyAtMs : nowMs + lookAgainMs;
    this.#sharers.look(sharer, nowMs, atMs, { items, weight, output, isBulk, yields });
    return atMs;
  }

  /**
   * While nothing is known of the service, one more is in flight after each that it accepted: answers that are counted as they come
   * would leave a debt of minutes.
   */
  #isFeelingItsWay(nowMs: number): boolean {
    const most = this.#refusals === 0 ? firstAtOnce + this.passes : 1 + this.passes - this.#passesAtRefusal;
    if (this.#sent.size + this.#answering.size < most) return false;
    return allKinds.every((kind) => this.#flow(kind, nowMs) === undefined);
  }

  #readyAtMs(
    nowMs: number,
    { items, weight, output }: Omit<Ahead, "runs">,
    ahead: AllAmounts,
    isBulk: boolean,
  ): number {
    const all = { runs: 1 + ahead.runs, items: items + ahead.items, weight: weight + ahead.weight };
    const amounts = this.#estimated(items, weight, output);
    return allKinds.reduce(
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
    // Which item goes next is not known yet, so its weight may be all input or all output: were it due and could not go, nothing would.
    const amounts = { ...this.#estimated(items, weight, 0), output: weight * (1 + this.#excess) };
    const states = allKinds.map((kind): BulkState => {
      const flow = this.#flow(kind, nowMs);
      if (flow === undefined) return "ready";
      return this.#bulk[kind].stateOf(nowMs, amounts[kind], flow, this.#left(kind, nowMs, noAmounts));
    });
    return goesFirst([...states, ...this.#given.bulkStates(nowMs, { runs: 1, items, weight })]);
  }

  #estimated(items: number, weight: number, output: number): AllAmounts {
    const more = 1 + this.#excess;
    return withInput({ runs: 1, items, weight: weight * more, output: output * more });
  }

  /** When a call of that weight would go, after the `ahead` that wait; as long as nothing else comes. */
  waitMs(nowMs: number, weight: number, output: number, ahead: Ahead): number {
    const own = withInput({ runs: 1, items: 1, weight, output });
    const others = withInput(ahead);
    const all = { runs: 1 + ahead.runs, items: 1 + ahead.items, weight: weight + ahead.weight };
    const waits = allKinds.map((kind) =>
      this.#budgets[kind].waitMs(nowMs, own[kind], others[kind], this.#paceOf(kind, nowMs)),
    );
    return Math.max(...waits, this.#given.amountsReadyAtMs(nowMs, all, false) - nowMs, 0);
  }

  /** What is left after the amounts that others get first. */
  #left(kind: AnyKind, nowMs: number, ahead: AllAmounts): Left {
    const pace = this.#paceOf(kind, nowMs);
    return {
      leftAtMs: (amount) => this.#budgets[kind].readyAtMs(nowMs, amount, ahead[kind], pace),
      // A budget fills continuously.
      neededFor: () => 0,
    };
  }

  /** Undefined if no limit of this kind is known. */
  #flow(kind: AnyKind, nowMs: number): Flow | undefined {
    return this.#budgets[kind].flow(this.#paceOf(kind, nowMs));
  }

  #spend(sharer: Sharer, nowMs: number, items: number, weight: number, bulkRate: number, output: number): void {
    this.#sharers.went(sharer, weight);
    this.#given.spend(nowMs, items, weight, bulkRate);
    const all = withInput({ runs: 1, items, weight, output });
    for (const kind of allKinds) {
      const bulk = kind === "runs" ? Number(bulkRate === 1) : bulkRate * all[kind];
      this.#usedByBulk[kind] += bulk;
      this.#bulk[kind].spend(nowMs, all[kind] - bulk, bulk, this.#flow(kind, nowMs));
    }
    this.#take(nowMs, all);
  }

  correct(nowMs: number, weight: number): void {
    this.#given.correct(nowMs, weight);
    this.#take(nowMs, { ...noAmounts, weight, input: weight });
    if (weight < 0) this.#sharers.wake();
  }

  /** Besides `correct`: of a call's `weight` beyond its estimate so much was output; and lanes have used that much more. */
  settle(nowMs: number, weight: number, output: number, isBulk: boolean): void {
    this.#take(nowMs, { ...noAmounts, input: -output, output });
    const more = withInput({ runs: 0, items: 0, weight, output });
    for (const kind of allKinds) this.#bulk[kind].correct(more[kind], isBulk);
    this.#sharers.wake();
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
    return this.#readyAtMs(nowMs, { items, weight, output: 0 }, noAmounts, false);
  }

  sent(nowMs: number, size: RequestSize, output: number = 0, due: number = 0): SentRequest {
    const request = { size, output, due, sentAtMs: nowMs, number: ++this.#numbers };
    this.#sent.add(request);
    return request;
  }

  /** Records that the service accepted a request; `tokens` is its own count; where the answer goes on, `counted` tells it later. */
  accepted(
    request: SentRequest,
    nowMs: number,
    tokens: number | undefined,
    told: ToldLimits | undefined,
    goesOn: boolean = false,
  ): void {
    this.#sent.delete(request);
    this.passes++;
    const { size } = request;
    this.sizes.passed(size);
    this.#pace.accepted(size.tokens - request.due);
    if (goesOn) this.#answering.add(request);
    else if (tokens !== undefined) this.counted(request, tokens);
    this.#refusedInARow = 0;
    this.#sharers.wake();
    if (this.#maxWeight < Infinity && ++this.#acceptedSince >= successesForSize) {
      this.#acceptedSince = 0;
      this.#maxWeight *= 2;
    }
    this.#learn(request, nowMs, told);
  }

  /** Records the service's count of a request that it had accepted. */
  counted(request: SentRequest, tokens: number): void {
    const { size } = request;
    this.#answering.delete(request);
    if (size.bytes > 0) this.#tokensPerByte += 0.1 * (tokens / size.bytes - this.#tokensPerByte);
    this.#pace.corrected(tokens - size.tokens + request.due);
    const excess = Math.min(mostExcess, tokens / Math.max(1, size.tokens) - 1);
    this.#excess = excess > this.#excess ? this.#excess + 0.5 * (excess - this.#excess) : 0.98 * this.#excess;
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
    // What was accepted before is still to be counted in part.
    const due = [...this.#sent, ...this.#answering].reduce((sum, each) => sum + each.due, 0);
    if (!isTold) this.#pace.refused(request.sentAtMs, nowMs, this.#due > 0);
    if (this.#passesAtRefusal < this.passes) this.#due = due;
    this.#passesAtRefusal = this.passes;
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
    if (!isTold) this.#budgets.weight.refused(nowMs, request.size.tokens, due, nowMs + pauseMs, pace);
    return pauseMs;
  }

  stats(nowMs: number = this.#clock.now()): RateLimitStats {
    const figures = (kind: AnyKind): RateLimitFigures => {
      const given = { ...this.#given.figures(kind as Kind, nowMs), used: this.#used[kind] };
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
      ...((this.#budgets.input.isTold || this.#budgets.output.isTold) && {
        input: figures("input"),
        output: figures("output"),
      }),
      refused: this.#refusals,
    };
  }

  #take(nowMs: number, amounts: AllAmounts): void {
    for (const kind of allKinds) {
      this.#used[kind] += amounts[kind];
      this.#budgets[kind].spend(nowMs, amounts[kind], this.#paceOf(kind, nowMs));
    }
  }

  /** A 429 does not say which limit was hit; the pace is measured in accepted weight. */
  #paceOf(kind: AnyKind, nowMs: number): number {
    return kind === "weight" ? this.#pace.at(nowMs) : Infinity;
  }

  #learn(request: SentRequest, nowMs: number, told: ToldLimits | undefined): void {
    // A late reply to an earlier request is outdated.
    if (told === undefined || request.number < this.#lastTold) return;
    this.#lastTold = request.number;
    const ahead = { runs: 0, items: 0, weight: 0, output: 0 };
    for (const { size, output } of this.#sent) {
      ahead.runs++;
      ahead.weight += size.tokens;
      ahead.output += output;
    }
    const inFlight = withInput(ahead) as Record<AnyKind, number>;
    for (const { output, due } of this.#answering) {
      inFlight.output += output;
      inFlight.weight += due;
    }
    for (const kind of ["runs", "weight", "input", "output"] as const) {
      const limit = told[kind];
      if (limit !== undefined) this.#budgets[kind].told(limit, nowMs, inFlight[kind], this.#paceOf(kind, nowMs));
    }
    if (this.#budgets.weight.isHalfFull(nowMs)) this.#pace.forget();
    this.#sharers.wake();
  }

  #takeShare(share: number): void {
    this.#given.share = share;
    for (const kind of allKinds) this.#budgets[kind].share = share;
    this.#sharers.wake();
  }

  #demand(nowMs: number): DemandView {
    const lane = (isBulk: boolean): DemandView["live"] => {
      const used = (kind: AnyKind): number => (isBulk ? this.#usedByBulk[kind] : this.#used[kind] - this.#usedByBulk[kind]); // prettier-ignore
      return {
        usedMs: Math.max(...allKinds.map((kind) => this.#budgets[kind].usedMs(used(kind)))),
        isWaiting: this.#sharers.areWaiting(nowMs, isBulk),
      };
    };
    const [live, bulk] = [lane(false), lane(true)];
    const bursts = allKinds.map((kind) => this.#bulk[kind].burst(nowMs) / this.#budgets[kind].holds(this.#paceOf(kind, nowMs))); // prettier-ignore
    return {
      live,
      bulk,
      burst: Math.max(this.#given.burst(nowMs), ...bursts),
      isActive: live.isWaiting || bulk.isWaiting || this.#sent.size > 0,
    };
  }
}
