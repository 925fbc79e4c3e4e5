import assert from "node:assert/strict";
import {
  adaptive,
  auto,
  type BatchContext,
  type Batcher,
  BatcherError,
  type CallOptions,
  createBatcher,
  greedy,
  type Policy,
  type QueueView,
  fixedWindow,
} from "../../dist/index.js";
import { manualClock } from "../../dist/testing/index.js";
import {
  BadItemError,
  type Call,
  Checker,
  type Item,
  keyError,
  type Result,
  type RunNote,
  weightLimit,
  weightOf,
} from "./checker.js";
import { seededRandom } from "../../dist/internal/tuning.js";
import type { Action, ActionTerms, PolicyName, Scenario } from "./scenario.js";

/** No item is to blame for it. */
class ServiceError extends Error {}

/** A run that does not end by itself ends after this long all the same, so that simulations end. */
const hangMs = 3_000;

const stormTerms: ActionTerms = {
  priority: "interactive",
  timeoutMs: undefined,
  alone: false,
  asks: false,
  controller: undefined,
};

/** What a simulation visited: the features that its calls used, and events that happened while they did. */
export interface Visit {
  readonly features: readonly Feature[];
  readonly events: readonly SecondEvent[];
}

export const features = [
  "tenants",
  "groups",
  "order keys",
  "weights",
  "lanes",
  "alone",
  "dedupe waiting",
  "dedupe running",
  "bisect",
  "put back",
  "pause",
  "early answers",
  "lists",
] as const;
export const secondEvents = ["flush", "close", "abort", "timeout", "put back", "failure"] as const;
export type Feature = (typeof features)[number];
export type SecondEvent = (typeof secondEvents)[number];

/** The pairs of features that the check of the options refuses. */
const refusedPairs: readonly (readonly [Feature, Feature])[] = [
  ["dedupe waiting", "dedupe running"],
  ["order keys", "dedupe running"],
];

/**
 * How often each pair of features met each second event: every one that options allow, those never visited with 0.
 * @public for `npm run prove -- simulations`
 */
export class Visits {
  readonly counts: Map<string, number> = new Map();

  constructor() {
    for (const [index, one] of features.entries())
      for (const other of features.slice(index + 1))
        if (!refusedPairs.some((pair) => pair.includes(one) && pair.includes(other)))
          for (const event of secondEvents) this.counts.set(`${one} + ${other} + ${event}`, 0);
  }

  add({ features: used, events }: Visit): void {
    for (const [index, one] of used.entries())
      for (const other of used.slice(index + 1))
        for (const event of events) {
          const triple = `${one} + ${other} + ${event}`;
          this.counts.set(triple, (this.counts.get(triple) ?? 0) + 1);
        }
  }
}

/** Plays a scenario from its first call to the last settled one; throws at the first broken promise. */
export async function simulate(scenario: Scenario): Promise<Visit> {
  const simulation = new Simulation(scenario);
  await simulation.play();
  return simulation.visit();
}

/** A callback calls the batcher again at most so often in a simulation, so that simulations end. */
const mostReentries = 40;

class Simulation {
  readonly #scenario: Scenario;
  readonly #clock = manualClock({ startAtMs: 1_000 });
  readonly #random: () => number;
  readonly #checker: Checker;
  readonly #batcher: Batcher<Item, Result>;
  readonly #controllers: AbortController[] = [0, 1, 2].map(() => new AbortController());
  /** Lists, maps, flushes and drains under way. */
  #open = 0;
  #items = 0;
  #arrivals = 0;
  #asked = { ok: 0, timeout: 0, aborted: 0, all: 0, isExact: true };
  #failure: unknown;
  #reentries = 0;
  #isReentering = false;
  readonly #events: Set<SecondEvent> = new Set();
  #closed: Promise<void> | undefined;

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
    this.#random = seededRandom(scenario.seed);
    this.#checker = new Checker(scenario, () => this.#clock.now());
    const key = <T>(of: (item: Item) => T) => {
      return (item: Item): T => {
        this.#reenter();
        if (item.throwsKey) throw keyError;
        return of(item);
      };
    };
    const { weights, hasBatchWeight, maxItemWeight } = scenario;
    const { groups, tenants, hasShares, orders, equals, joinsRuns, keyed } = scenario;
    const { runOne, onBatchError, maxBisectRuns } = scenario;
    this.#batcher = createBatcher<Item, Result>(
      async (items, context) =>
        this.#keyed(await this.#run([...items], context, keyed === undefined ? undefined : 0), items),
      {
        clock: {
          now: () => {
            this.#reenter();
            return this.#clock.now();
          },
          after: this.#clock.after,
        },
        policy: this.#reenteringPolicy(policyOf(scenario.policy, seededRandom(scenario.seed + 1))),
        maxBatchSize: scenario.maxBatchSize,
        maxWaitMs: scenario.maxWaitMs,
        concurrency: scenario.concurrency,
        maxQueueSize: scenario.maxQueueSize,
        overloadOrder: scenario.overloadOrder,
        onQueueFull: scenario.onQueueFull,
        timeoutMs: scenario.timeoutMs,
        refuseLate: scenario.refuseLate,
        runTimeoutMs: scenario.runTimeoutMs,
        rateLimit: scenario.rateLimit,
        onBatchError,
        ...(weights === "none"
          ? {}
          : {
              weigh: key(({ weight }) => weight),
              batchWeight: weights,
              ...(hasBatchWeight ? { maxBatchWeight: weightLimit } : {}),
              maxItemWeight,
            }),
        ...(groups > 0 ? { groupKey: key(({ group }) => group) } : {}),
        ...(tenants > 0 ? { fairKey: key(({ tenant }) => tenant) } : {}),
        ...(tenants > 0 && hasShares ? { shareOf: (tenant) => ((tenant as number | undefined) ?? 0) + 0.5 } : {}),
        ...(orders > 0 ? { orderKey: key(({ order }) => order) } : {}),
        ...(equals > 0 ? { dedupeKey: key(({ equal }) => equal) } : {}),
        ...(equals > 0 && orders === 0 && joinsRuns ? { dedupe: "running" } : {}),
        ...(keyed === undefined ? {} : { resultKey: ({ id }) => `item ${id}`, onMissing: keyed }),
        ...(onBatchError === "bisect" ? { maxBisectRuns } : {}),
        ...(onBatchError === "bisect" && runOne
          ? {
              runOne: async (item: Item, context: BatchContext) => (await this.#run([item], context, 0))?.[0] as Result,
            }
          : {}),
      },
    );
    this.#batcher.subscribe(() => this.#reenter());
  }

  #reenteringPolicy(policy: Policy): Policy {
    if (this.#scenario.reenterRate === 0) return policy;
    const { decide, arrived, observe } = policy;
    return Object.assign(policy, {
      decide: (view: QueueView) => {
        this.#reenter();
        return decide.call(policy, view);
      },
      arrived: (view: QueueView) => {
        this.#reenter();
        arrived?.call(policy, view);
      },
      observe: (...seen: Parameters<NonNullable<Policy["observe"]>>) => {
        this.#reenter();
        observe?.apply(policy, seen);
      },
    });
  }

  /** A callback of the batcher calls it again, in the middle of whatever it does. */
  #reenter(): void {
    const { reenterRate, close } = this.#scenario;
    if (reenterRate === 0 || this.#isReentering || this.#reentries >= mostReentries) return;
    // The batcher is not there yet while it is made.
    if ((this.#batcher as Batcher<Item, Result> | undefined) === undefined || this.#random() >= reenterRate) return;
    this.#reentries++;
    this.#isReentering = true;
    const what = this.#random();
    if (what < 0.7) {
      const pick = <T>(values: readonly T[]): T => values[Math.floor(this.#random() * values.length)]!;
      const terms: ActionTerms = {
        priority: pick(["interactive", "interactive", "immediate", "bulk"]),
        timeoutMs: pick([undefined, undefined, 5, 40]),
        alone: this.#random() < 0.1,
        asks: this.#random() < 0.2,
        controller: pick([undefined, undefined, 0, 1]),
      };
      this.#single(this.#newCall(terms, true, this.#signalOf(terms), true), terms);
    } else if (what < 0.8) this.#act({ afterMs: 0, kind: "flush" });
    else if (what < 0.95) this.#act({ afterMs: 0, kind: "abort", controller: Math.floor(this.#random() * 3) });
    else if (close !== undefined && this.#random() < 0.2) this.#close(undefined);
    else this.#batcher.stats();
    this.#isReentering = false;
  }

  visit(): Visit {
    const { tenants, groups, orders, equals, weights, joinsRuns, onBatchError, actions } = this.#scenario;
    const joins = equals > 0 && orders === 0 && joinsRuns;
    const uses = (is: (terms: ActionTerms) => boolean): boolean =>
      actions.some((action) => "terms" in action && action.count > 0 && is(action.terms));
    const used: Record<Feature, boolean> = {
      tenants: tenants > 0,
      groups: groups > 0,
      "order keys": orders > 0,
      weights: weights !== "none",
      lanes: uses(({ priority }) => priority !== "interactive"),
      alone: uses(({ alone }) => alone),
      "dedupe waiting": equals > 0 && !joins,
      "dedupe running": joins,
      bisect: onBatchError === "bisect",
      "put back": this.#checker.runs.some(({ isPutBack }) => isPutBack),
      pause: this.#checker.hasPaused,
      "early answers": this.#checker.answered.size > 0,
      lists: actions.some((action) => (action.kind === "many" || action.kind === "settle") && action.count > 0),
    };
    if (used["put back"]) this.#events.add("put back");
    if (this.#checker.runs.some(({ failedWith }) => failedWith !== undefined)) this.#events.add("failure");
    return { features: features.filter((feature) => used[feature]), events: [...this.#events] };
  }

  async play(): Promise<void> {
    const { actions, storm, close } = this.#scenario;
    for (const [index, action] of actions.entries()) {
      for (let ms = 0; ms < action.afterMs; ms++) await this.#step(1);
      this.#act(action);
      // Only now and then is there a pause between two callers: most arrive in one turn.
      if (this.#random() < 0.5) await this.#step(0);
      if (storm !== undefined && storm.afterAction === index) await this.#ride(storm);
      if (close !== undefined && close.afterAction === index) this.#close(close.graceMs);
    }
    for (let ms = 0; ms < 80; ms++) await this.#step(1);
    if (this.#closed === undefined) await this.#settleWithoutPush();
    if (this.#closed === undefined) this.#close(undefined);
    await this.#stepUntil(() => this.#isQuiet());
    const closing = this.#closed!.then(() => "closed");
    await this.#stepUntil(() => this.#checker.unended === 0);
    assert.equal(await Promise.race([closing, this.#step(0)]), "closed", "close did not resolve");
    this.#checkTheEnd();
  }

  /** A batcher that nobody flushes must end its work by itself, unless its policy may hold forever. */
  async #settleWithoutPush(): Promise<void> {
    const { policy, maxWaitMs } = this.#scenario;
    const mayHold = maxWaitMs === undefined && (policy === "hold" || policy === "hostile" || policy === "window-size");
    if (mayHold) return;
    await this.#stepUntil(() => this.#isQuiet());
  }

  async #step(ms: number): Promise<undefined> {
    await this.#clock.advanceAsync(ms);
    if (this.#failure !== undefined) throw this.#failure;
    this.#checker.atRest();
    return undefined;
  }

  /** Big steps: the laws of a moment are checked at each, and nothing new arrives. */
  async #stepUntil(isDone: () => boolean): Promise<void> {
    for (let step = 0; step < 3_000; step++) {
      await this.#step(step < 50 ? 1 : 97);
      if (isDone()) return;
    }
    const waiting = this.#checker.calls.filter(({ outcome, isForgotten }) => outcome === undefined && !isForgotten);
    const { queued, inFlight } = this.#batcher.stats();
    assert.fail(
      `after ${this.#clock.now()} ms ${waiting.length} calls never settled (items ${waiting.map(({ item }) => item.id).join(" ")}; ` +
        `${queued} queued, ${inFlight} in flight, ${this.#open} lists, maps, flushes or drains open)`,
    );
  }

  #isQuiet(): boolean {
    return (
      this.#open === 0 && this.#checker.calls.every(({ outcome, isForgotten }) => outcome !== undefined || isForgotten)
    );
  }

  #act(action: Action): void {
    if (action.kind === "flush" && this.#batcher.pending.queued > 0) this.#events.add("flush");
    if (action.kind === "abort") {
      this.#controllers[action.controller]!.abort(new Error(`abort ${action.controller}`));
      this.#controllers[action.controller] = new AbortController();
    } else if (action.kind === "calls") {
      for (let call = 0; call < action.count; call++) this.#single(this.#newCall(action.terms, true), action.terms);
    } else if (action.kind === "map") {
      this.#map(action.count, action.take, action.terms);
    } else if (action.kind === "many" || action.kind === "settle") {
      this.#list(action.kind, action.count, action.terms);
    } else if (action.kind === "flush" || action.kind === "drain") {
      this.#watch(this.#batcher[action.kind](), () => {});
    }
  }

  async #ride({ perMs, forMs, patienceMs }: NonNullable<Scenario["storm"]>): Promise<void> {
    for (let ms = 0; ms < forMs; ms++) {
      for (let call = 0; call < perMs; call++) this.#impatient(patienceMs, 2);
      await this.#step(1);
    }
  }

  #impatient(patienceMs: number, attempts: number): void {
    const controller = new AbortController();
    const leave = this.#clock.after(patienceMs, () => controller.abort(new Error("abort of a storm")));
    const call = this.#newCall(stormTerms, true, controller.signal);
    this.#asked.all += 1;
    this.#watch(this.#resultOf(call.item, this.#optionsOf(call, stormTerms), stormTerms), (outcome) => {
      leave();
      this.#checker.settled(call, outcome);
      this.#count(outcome);
      if ("reason" in outcome && attempts > 1) this.#clock.after(10, () => this.#impatient(patienceMs, attempts - 1));
    });
  }

  #single(call: Call, terms: ActionTerms): void {
    this.#asked.all += 1;
    this.#watch(this.#resultOf(call.item, this.#optionsOf(call, terms), terms), (outcome) => {
      this.#checker.settled(call, outcome);
      this.#count(outcome);
    });
  }

  #list(kind: "many" | "settle", count: number, terms: ActionTerms): void {
    const calls = Array.from({ length: count }, () => this.#newCall(terms, false));
    this.#asked.all += count;
    const options = this.#optionsOf({ signal: this.#signalOf(terms) }, terms);
    const items = calls.map(({ item }) => item);
    if (kind === "many") {
      this.#asked.isExact &&= count === 0;
      this.#watch(this.#batcher.many(items, options), (outcome) => {
        for (const call of calls) call.isForgotten = true;
        if ("value" in outcome) {
          assert.equal(outcome.value.length, count, "results of a list");
          outcome.value.forEach((value, index) => this.#checker.settled(calls[index]!, { value }));
          return;
        }
        this.#checkListReason(calls, outcome.reason);
      });
      return;
    }
    this.#watch(this.#outcomesOf(items, options, terms), (outcome) => {
      if ("reason" in outcome) {
        for (const call of calls) call.isForgotten = true;
        this.#asked.isExact = false;
        this.#checkListReason(calls, outcome.reason);
        return;
      }
      assert.equal(outcome.value.length, count, "outcomes of a list");
      outcome.value.forEach((one, index) => {
        const call = calls[index]!;
        const own = one.status === "fulfilled" ? { value: one.value } : { reason: one.reason as unknown };
        // The list tells at its end; its items settled before, so a deadline may have passed since.
        if ("value" in own) call.outcome = own;
        else {
          call.outcome = own;
          if (!(own.reason instanceof BatcherError)) this.#checker.checkReason(call, own.reason, this.#clock.now());
        }
        if ("value" in own) this.#checker.checkOwn(call, own.value);
        this.#count(own);
      });
    });
  }

  #map(count: number, take: number, terms: ActionTerms): void {
    this.#asked.isExact = false;
    const signal = this.#signalOf(terms);
    const calls: Call[] = [];
    let wasClosed = false;
    const source = (function* (simulation: Simulation) {
      try {
        for (let pulled = 0; pulled < count; pulled++) {
          const call = simulation.#newCall(terms, false, signal);
          calls.push(call);
          yield call.item;
        }
      } finally {
        wasClosed = true;
      }
    })(this);
    const reading = async (): Promise<void> => {
      let read = 0;
      if (take === 0) return;
      for await (const result of this.#batcher.map(source, this.#optionsOf({ signal }, terms))) {
        const call = calls[read++]!;
        call.isForgotten = true;
        this.#checker.checkOwn(call, result);
        if (read >= take) break;
      }
      assert.ok(wasClosed, "a map left its source open");
      if (take > count) assert.equal(read, count, "results of a map");
    };
    this.#watch(reading(), (outcome) => {
      for (const call of calls) call.isForgotten = true;
      if ("reason" in outcome) {
        if (outcome.reason instanceof assert.AssertionError) throw outcome.reason;
        this.#checkListReason(calls, outcome.reason);
      }
    });
  }

  /** A list's error is the error of one of its items, or a refusal of the whole. */
  #checkListReason(calls: readonly Call[], reason: unknown): void {
    const isRefusal = reason instanceof BatcherError && (reason.code === "CLOSED" || reason.code === "QUEUE_FULL");
    if (isRefusal && this.#checker.closedAtMs !== undefined) return;
    if (isRefusal && reason.code === "QUEUE_FULL") return this.#checker.checkFull(reason);
    const causes: unknown[] = [];
    for (const call of calls) {
      try {
        return this.#checker.checkReason(call, reason, this.#clock.now());
      } catch (error) {
        causes.push(error);
      }
    }
    throw causes[0] ?? new assert.AssertionError({ message: `an empty list failed with ${String(reason)}` });
  }

  #close(graceMs: number | undefined): void {
    if (this.#batcher.pending.queued > 0) this.#events.add("close");
    this.#checker.closedAtMs ??= this.#clock.now();
    if (graceMs !== undefined) this.#checker.cutOffAtMs ??= this.#clock.now() + graceMs;
    this.#closed = this.#batcher.close({ graceMs });
    this.#watch(this.#closed, () => this.#checker.closed());
  }

  #watch<T>(promise: Promise<T>, then: (outcome: { readonly value: T } | { readonly reason: unknown }) => void): void {
    this.#open += 1;
    let settled = 0;
    const told = (outcome: { readonly value: T } | { readonly reason: unknown }): void => {
      this.#open -= 1;
      settled += 1;
      try {
        assert.equal(settled, 1);
        then(outcome);
      } catch (error) {
        this.#failure ??= error;
      }
    };
    promise.then(
      (value) => told({ value }),
      (reason: unknown) => told({ reason }),
    );
  }

  /** `isNested`: made while another is, before which it comes. */
  #newCall(terms: ActionTerms, isSingle: boolean, signal = this.#signalOf(terms), isNested = false): Call {
    const { groups, tenants, orders, equals, weights, throwingKeys, run } = this.#scenario;
    const id = this.#items++;
    const isFree = isNested && orders > 0;
    const equal = equals > 0 && !isFree && this.#random() < 0.8 ? Math.floor(this.#random() * equals) : undefined;
    // Equal items must agree in all that matters, so those are drawn from what they share.
    const draw = equal === undefined ? this.#random : seededRandom(this.#scenario.seed + 17 * (equal + 1));
    const item: Item = {
      id,
      equal: terms.alone ? undefined : equal,
      weight: weights === "none" ? 1 : Math.floor(draw() * (draw() < 0.05 ? 60 : 16)),
      group: groups > 0 ? Math.floor(draw() * groups) : undefined,
      // Equal items may come from several tenants, and some from none.
      tenant: tenants > 0 && this.#random() < 0.9 ? Math.floor(this.#random() * tenants) : undefined,
      order: orders > 0 && !isFree && draw() < 0.9 ? Math.floor(draw() * orders) : undefined,
      isBad: draw() < run.badItemRate,
      isAlone: terms.alone,
      throwsKey: throwingKeys && groups + tenants + orders + (terms.alone ? 0 : equals) > 0 && draw() < 0.1,
    };
    const timeoutMs = terms.timeoutMs ?? this.#scenario.timeoutMs ?? Infinity;
    const madeAtMs = this.#clock.now();
    const call: Call = {
      item,
      arrival: this.#arrivals++,
      madeAtMs,
      deadlineAtMs: madeAtMs + timeoutMs,
      signal,
      isSingle,
      isForgotten: false,
    };
    this.#checker.called(call);
    return call;
  }

  #signalOf({ controller }: ActionTerms): AbortSignal | undefined {
    return controller === undefined ? undefined : this.#controllers[controller]!.signal;
  }

  #optionsOf({ signal }: Pick<Call, "signal">, { priority, timeoutMs, alone }: ActionTerms) {
    return { signal, priority, timeoutMs, alone };
  }

  async #resultOf(item: Item, options: CallOptions, { asks }: ActionTerms): Promise<Result> {
    if (!asks) return this.#batcher(item, options);
    const answer = await this.#batcher.detailed(item, options);
    this.#checker.toldOf(item, answer);
    return answer.value;
  }

  async #outcomesOf(items: Item[], options: CallOptions, { asks }: ActionTerms) {
    if (!asks) return this.#batcher.settle(items, options);
    const outcomes = await this.#batcher.settleDetailed(items, options);
    return outcomes.map((outcome, index): PromiseSettledResult<Result> => {
      if (outcome.status === "rejected") return outcome;
      this.#checker.toldOf(items[index]!, outcome.value);
      return { status: "fulfilled", value: outcome.value.value };
    });
  }

  async #run(
    items: Item[],
    context: BatchContext,
    shortRate = this.#scenario.run.shortRate,
  ): Promise<(Result | Error)[]> {
    const { run, weights } = this.#scenario;
    let note: RunNote;
    try {
      note = this.#checker.started(items, context);
    } catch (error) {
      this.#failure ??= error;
      throw error;
    }
    const hangs = this.#random() < run.hangRate;
    const runMs = hangs
      ? hangMs
      : run.fixedMs + run.perItemMs * items.length + run.perWeightMs * weightOf(weights, items);
    const answered = this.#answerSome(note, context, runMs);
    this.#reenter();
    const onAbort = (): void => {
      if (run.answerRate > 0) this.#guard(() => this.#checker.aborted(note));
      this.#reenter();
    };
    const hears = run.answerRate > 0 || this.#scenario.reenterRate > 0;
    if (hears) context.signal.addEventListener("abort", onAbort);
    await this.#lasting(runMs, run.heedsSignal ? context.signal : undefined);
    if (hears) context.signal.removeEventListener("abort", onAbort);
    try {
      const results = this.#resultsOf(items, answered, shortRate);
      this.#checker.ended(note);
      return results;
    } catch (error) {
      const isPutBack = error instanceof ServiceError && this.#random() < run.putBackRate;
      if (isPutBack) context.putBack();
      this.#checker.ended(note, { error, isPutBack });
      throw error;
    }
  }

  /** Answers some items in the course of a run, and some after its end, with what nobody may get. */
  #answerSome(note: RunNote, { answer }: BatchContext, runMs: number): ReadonlySet<number> {
    const { answerRate } = this.#scenario.run;
    const answered = new Set<number>();
    if (answerRate === 0) return answered;
    for (const [index, item] of note.items.entries()) {
      if (this.#random() >= answerRate) continue;
      const atMs = Math.floor(this.#random() * 1.2 * runMs);
      const answerNow = (): void => {
        const isHeard = this.#checker.answering(note, item);
        if (isHeard === undefined) return;
        if (!isHeard) return answer(index, new Error("too late"));
        answered.add(index);
        answer(index, this.#ownResult(item));
        answer(index, new Error("a second answer"));
      };
      if (atMs === 0) answerNow();
      else this.#clock.after(atMs, answerNow);
    }
    return answered;
  }

  #guard(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.#failure ??= error;
    }
  }

  #ownResult(item: Item): Result | Error {
    if (this.#random() >= this.#scenario.run.slotErrorRate) return { of: item };
    const error = new Error(`item ${item.id} failed alone`);
    this.#checker.slotErrors.set(error, item);
    return error;
  }

  #resultsOf(items: readonly Item[], answered: ReadonlySet<number>, shortRate: number): (Result | Error)[] {
    const { run } = this.#scenario;
    if (this.#random() < run.failureRate) {
      const retryAfterMs = this.#random() < run.pauseRate ? Math.floor(this.#random() * 40) + 1 : undefined;
      throw Object.assign(new ServiceError("the service failed"), { status: 503 }, retryAfterMs && { retryAfterMs });
    }
    const bad = items.findIndex(({ isBad }) => isBad);
    if (bad >= 0) {
      const error = new BadItemError(`item ${items[bad]!.id} is bad`);
      throw this.#random() < 0.3 ? Object.assign(error, { itemIndex: bad }) : error;
    }
    const results = items.map((item, index) => (answered.has(index) ? new Error("ignored") : this.#ownResult(item)));
    if (this.#random() < shortRate) return results.slice(1);
    const isOver = answered.size === items.length && this.#scenario.keyed === undefined && this.#random() < 0.5;
    return isOver ? (undefined as never) : results;
  }

  /** The same results by key, in another order, some left out and one too many. */
  #keyed(results: (Result | Error)[], items: Item[]): (Result | Error)[] | Map<unknown, Result | Error> {
    if (this.#scenario.keyed === undefined) return results;
    const found = new Map<unknown, Result | Error>([["another item", new Error("of nobody")]]);
    for (const [index, item] of [...items.entries()].reverse()) {
      if (this.#random() < 0.1) this.#checker.missing.add(item);
      else found.set(`item ${item.id}`, results[index]);
    }
    items.length = 0; // its own array, which nobody looks at again
    return found;
  }

  #lasting(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      if (ms === 0) return resolve();
      this.#clock.after(ms, resolve);
      signal?.addEventListener("abort", () => resolve(), { once: true });
    });
  }

  #count(outcome: { readonly value: unknown } | { readonly reason: unknown }): void {
    if ("value" in outcome) this.#asked.ok += 1;
    else if (outcome.reason instanceof BatcherError && outcome.reason.code === "TIMEOUT") {
      this.#asked.timeout += 1;
      this.#events.add("timeout");
    } else if (outcome.reason instanceof Error && outcome.reason.message.startsWith("abort ")) {
      this.#asked.aborted += 1;
      this.#events.add("abort");
    }
  }

  #checkTheEnd(): void {
    this.#checker.checkBisectBounds();
    const stats = this.#batcher.stats();
    const mainRuns = this.#checker.runs.filter(({ isSubRun, isPutBack }) => !isSubRun && !isPutBack);
    assert.equal(stats.queued, 0, "items are left in the queue");
    assert.equal(stats.inFlight, 0, "batches are left in flight");
    // One of which a part went back is not counted either: the rest of its items run again.
    const back = this.#checker.runs.filter(({ isPutBack, mayBePutBack }) => isPutBack || mayBePutBack === true);
    const least = mainRuns.filter(({ batchId }) => !back.some((run) => run.batchId === batchId)).length;
    assert.ok(stats.batches >= least && stats.batches <= mainRuns.length, "stats().batches");
    const subRuns = this.#checker.runs.filter(({ isSubRun }) => isSubRun);
    assert.equal(stats.bisectRuns, subRuns.length, "stats().bisectRuns");
    const reasons = Object.values(stats.reasons).reduce((sum, count) => sum + count, 0);
    assert.equal(reasons, stats.batches, "stats().reasons");
    const { ok, error, timeout, aborted, rejected } = stats.items;
    for (const count of [ok, error, timeout, aborted, rejected]) assert.ok(Number.isInteger(count) && count >= 0);
    if (!this.#asked.isExact) return;
    assert.equal(ok + error + timeout + aborted + rejected, this.#asked.all, "stats().items adds up to the calls");
    assert.equal(ok, this.#asked.ok, "stats().items.ok");
    assert.equal(timeout, this.#asked.timeout, "stats().items.timeout");
    assert.equal(aborted, this.#asked.aborted, "stats().items.aborted");
  }
}

function policyOf(name: PolicyName, random: () => number): Policy {
  if (name === "greedy") return greedy();
  if (name === "window") return fixedWindow();
  if (name === "window-time") return fixedWindow({ trigger: "time" });
  if (name === "window-size") return fixedWindow({ trigger: "size" });
  if (name === "auto") return auto();
  if (name === "adaptive") return adaptive({ targetLatencyMs: 50 });
  if (name === "hold") return { name, decide: () => "wait" };
  return {
    name,
    decide: ({ nowMs, waiting, maxBatchSize }) => {
      const odd = random();
      if (odd < 0.3) return { run: waiting };
      if (odd < 0.5) return { askAgainAtMs: nowMs + Math.floor(random() * 40) - 5 };
      if (odd < 0.7) return "wait";
      if (odd < 0.75) return { run: [0, -1, Number.NaN, Infinity, 1.5][Math.floor(random() * 5)]! };
      if (odd < 0.8) return { askAgainAtMs: [Number.NaN, Infinity, -Infinity][Math.floor(random() * 3)]! };
      if (odd < 0.81) return undefined as never;
      return { run: Math.ceil(random() * maxBatchSize) };
    },
  };
}
