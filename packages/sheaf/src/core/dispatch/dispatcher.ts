import type { CostModel } from "../../policies/cost-model.ts";
import type { BatchRecord } from "../../policies/policy.ts";
import { Bisector, isLoss, mayBeOfItems, type Runs } from "./bisect.ts";
import type { Settlement } from "../queue/settlement.ts";
import type { Batch, Entry } from "../queue/entry.ts";
import { type BatchRun, eachRead, resultsInOrder, Run, type Dispatched, type RunFacts } from "./run.ts";
import type { BatcherError } from "../contract/errors.ts";
import type { Executor } from "../contract/executor.ts";
import type { Queue } from "../queue/queue.ts";
import { putBack } from "./put-back.ts";
import type { Throttle } from "./throttle.ts";
import { RunTimeouts } from "./run-timeouts.ts";
import type { TimedRun } from "./timed-run.ts";
import type { SearchTurns } from "./search-turns.ts";
import type { BaseRunHandle } from "../contract/base-run-handle.ts";
import type { Settings } from "../contract/settings.ts";

/** Gets the record of each batch once it has its outcome, in the same turn as its last callers. */
export interface BatchObserver {
  observe(record: BatchRecord, nowMs: number, batch: Batch): void;
}

/** Gets each record before the observers do, and each run of a part of a batch that passed: what runs cost is learned from them. */
export interface Learner {
  /** `hasFailed`: the run itself did, not one of its items that may be to blame, and they were not put back. */
  learn(run: RunFacts, nowMs: number, hasFailed: boolean): void;
  /** All slots are taken, and for this long no run has ended. */
  stoodStill?(nowMs: number, forMs: number): void;
}

/** A batch that goes ahead as late as possible leaves this share of a run before its slot is free, and at least `leastLeadMs`. */
const leadShare = 0.1;
const leastLeadMs = 2;

/** Runs batches, each in one slot, and passes their outcome to the callers. A failed one that is searched leaves its slot. */
export class Dispatcher<In, Out> implements Runs<In, Out> {
  /** Batches so far; the last one has this id. */
  started = 0;
  /** Items in them. */
  running = 0;
  /** Further runs of parts of batches. */
  bisectRuns = 0;
  readonly learners: Learner[] = [];
  readonly observers: BatchObserver[] = [];
  /** Is told when a slot may be free again, and when a run begins. */
  scheduler: { freed(nowMs: number): void; began(): void } | undefined;
  /** Until the executor is ready, nothing is dispatched. */
  #state: "starting" | "open" | "stopped" = "starting";
  readonly run: BatchRun<In>;
  readonly executor: Pick<Executor<In, Out>, "reportsStart" | "runsApart" | "found"> | undefined;
  readonly settings: Settings<In, Out>;
  readonly calls: Settlement<In>;
  readonly queue: Queue<In>;
  readonly timeouts: RunTimeouts | undefined;
  readonly throttle: Throttle;
  readonly #runs: Run<In>[] = []; // in no order; each knows its place
  /** Milliseconds that all runs have taken together, until the moment of the last change. */
  #togetherMs = 0;
  #changedAtMs = 0;
  readonly inOrder: (results: unknown, entries: readonly Entry<In>[], handle: BaseRunHandle) => ArrayLike<unknown>;
  readonly #bisector: Bisector<In, Out> | undefined;

  constructor(
    run: BatchRun<In>,
    executor: Pick<Executor<In, Out>, "reportsStart" | "runsApart" | "found"> | undefined,
    settings: Settings<In, Out>,
    calls: Settlement<In>,
    queue: Queue<In>,
    throttle: Throttle,
    cost: Pick<CostModel, "at">,
  ) {
    this.run = run;
    this.executor = executor;
    this.settings = settings;
    this.calls = calls;
    this.queue = queue;
    this.throttle = throttle;
    this.inOrder = resultsInOrder(settings);
    this.timeouts =
      settings.runTimeoutMs === undefined ? undefined : new RunTimeouts(settings, settings.runTimeoutMs, this);
    if (settings.onBatchError === "bisect") this.#bisector = new Bisector<In, Out>(this, cost);
  }

  /** With `onBatchError: "bisect"`: the turns of parts of failed batches. */
  get turns(): SearchTurns<In> | undefined {
    return this.#bisector?.turns;
  }

  get isStopped(): boolean {
    return this.#state === "stopped";
  }

  /** Runs that were abandoned and have not ended. */
  get abandonedNow(): number {
    return this.timeouts?.abandonedNow ?? 0;
  }

  get abandonedRuns(): number {
    return this.timeouts?.abandonedRuns ?? 0;
  }

  /** Batches that hold a slot. */
  get inFlight(): number {
    return this.#runs.length;
  }

  /** Batches that may start now. */
  get freeSlots(): number {
    const { limit: concurrency } = this.settings.slots;
    return this.#state !== "open" || this.abandonedNow >= concurrency ? 0 : concurrency - this.inFlight;
  }

  get hasSlot(): boolean {
    return this.#state === "open" && this.inFlight < this.settings.slots.limit;
  }

  /** Whether a busy slot may take one more batch ahead, where its executor does. */
  get takesAhead(): boolean {
    const { slots, prefetch } = this.settings;
    return this.#state === "open" && this.abandonedNow === 0 && this.inFlight < slots.limit * (1 + prefetch);
  }

  open(): void {
    if (this.#state === "starting") this.#state = "open";
  }

  stop(): void {
    this.#state = "stopped";
    this.turns?.stop();
    this.throttle.seat?.leave();
  }

  // What a run reports before its outcome.

  began(): number {
    this.scheduler?.began();
    return this.settings.clock.now();
  }

  retried(items: number, weight: number, bulkRate: number, isPart: boolean): number {
    const nowMs = this.settings.clock.now();
    if (isPart) this.ranAgain(items, weight, bulkRate, nowMs);
    else this.throttle.seat?.spend(nowMs, items, weight, bulkRate);
    return nowMs;
  }

  answered(batch: Batch<In>, index: number, result: unknown): void {
    this.calls.settle(batch, batch.entries[index]!, result);
  }

  /** A bisection runs some items of a batch again. */
  ranAgain(items: number, weight: number, bulkRate: number, nowMs: number): void {
    this.bisectRuns++;
    this.throttle.seat?.spend(nowMs, items, weight, bulkRate);
  }

  freed(nowMs: number): void {
    this.scheduler?.freed(nowMs);
  }

  start(batch: Batch<In>, dispatched: Dispatched): void {
    this.started++;
    const run = new Run<In>(dispatched, batch, this);
    batch.run = run;
    this.running += run.size;
    run.msBefore = this.hold(run, run.startedAtMs);
    // An await in a function of its own would take half as long again.
    this.attempt(run, run, batch.entries, this.run, undefined).then(
      (results) => this.#ran(run, results),
      (error: unknown) => this.#failed(run, error),
    );
  }

  /** Every run in flight has called this batcher: if all wait for the answer, none ends. */
  haveAllCalled(): boolean {
    return this.#runs.length > 0 && this.#runs.every((run) => run.hasCalled);
  }

  /** Runs that were abandoned and have not ended hold every slot. */
  get isHung(): boolean {
    return this.#state === "open" && this.inFlight === 0 && this.abandonedNow >= this.settings.slots.limit;
  }

  /** How long the runs in flight will still take; a tenth of the expected time for a run that takes longer. */
  restsMs(cost: CostModel, nowMs: number): number[] {
    return this.#runs.map((run) => {
      const expectedMs = run.expectedMs(cost);
      return Math.max(expectedMs / 10, expectedMs - (nowMs - run.beganAtMs));
    });
  }

  /**
   * With every slot busy: from when on one more batch may go ahead to one of them, as late as hides the time that it takes to
   * wake up. That is shortly before the next run ends which no batch follows yet; now, where that moment is not known.
   */
  aheadAtMs(cost: CostModel): number {
    if (this.executor?.reportsStart !== true) return -Infinity;
    const momentsAtMs = this.#runs.map((run) => {
      if (!run.hasBegun) return Infinity;
      const expectedMs = run.expectedMs(cost);
      return run.beganAtMs + expectedMs - Math.max(leastLeadMs, leadShare * expectedMs);
    });
    return momentsAtMs.sort((a, b) => a - b)[this.inFlight - this.settings.slots.limit]!;
  }

  /** Rejects every caller in flight and aborts the runs; their slots are not reused. */
  cutOff(error: BatcherError): void {
    for (const run of this.#all()) {
      this.calls.failAll(run.batch, error, "rejected");
      run.abort(error);
    }
  }

  /** Once the batcher is closed: the timer of a run that goes on would keep the process alive. */
  stopTimers(): void {
    this.timeouts?.close();
    for (const run of this.#all()) run.stopTimer?.();
  }

  /**
   * Resolves when every run has ended that goes on after its callers were answered; an aborted one is not waited for.
   */
  async answeringRunsEnded(): Promise<void> {
    for (;;) {
      const run = this.#all().find((each) => each.unanswered() !== undefined && each.aborted === undefined);
      if (run === undefined) return;
      await new Promise<void>((resolve) => (run.whenOver = resolve));
    }
  }

  #ran(run: Run<In>, returned: unknown): void {
    const { batch } = run;
    const { tally } = this.calls;
    let results: ArrayLike<unknown>;
    try {
      results = this.inOrder(returned, batch.entries, run);
    } catch (error) {
      return void this.#failed(run, error);
    }
    const nowMs = this.settings.clock.now();
    const failedBefore = tally.error;
    this.#measured(run, nowMs);
    try {
      this.calls.settleAll(batch, results, nowMs);
    } catch {
      // An entry cannot be read: a Proxy, or a getter that throws. The others can.
      results = eachRead(results, batch.entries.length);
      this.calls.settleAll(batch, results, nowMs);
    }
    for (let i = 0; tally.error > failedBefore && i < batch.entries.length; i++)
      if (results[i] instanceof Error && !run.isAnswered(i)) run.failedItems++;
    this.record(run, nowMs, run.extraRuns > 0 ? "partial" : "ok", false);
    this.end(run, nowMs);
  }

  async #failed(run: Run<In>, error: unknown): Promise<void> {
    const nowMs = this.settings.clock.now();
    this.throttle.failed(error);
    if (!run.abandoned && run.isPutBack) {
      this.#measured(run, nowMs);
      this.record(run, nowMs, "refused", false, error);
      this.putBack(run, error);
    } else {
      const search = this.#bisector?.search(run, error);
      if (search !== undefined) return search;
      this.#measured(run, nowMs);
      this.restFailed(run, error);
      const mayBeOfItem = isLoss(error) === undefined && mayBeOfItems(error);
      this.record(run, nowMs, run.passedItems > 0 ? "partial" : "error", !mayBeOfItem, error);
    }
    this.end(run, nowMs);
  }

  /** The run of a batch has ended; where parts of it ran, only all of them together have a time that is the batch's. */
  #measured(run: Run<In>, nowMs: number): void {
    if (run.extraRuns > 0) run.runMs = nowMs - run.startedAtMs;
    else run.runMs ??= nowMs - run.beganAtMs;
  }

  restFailed(run: Run<In>, error: unknown): void {
    for (const { settler } of run.batch.entries) if (settler !== undefined) run.failedItems++;
    this.calls.failAll(run.batch, error);
  }

  putBack(run: Run<In>, error: unknown): void {
    putBack(run, error, this.queue, this.throttle, this.settings.maxPauseMs);
  }

  end(run: Run<In>, nowMs: number): void {
    run.whenOver?.();
    if (run.hasSlot) this.leave(run, nowMs);
    this.running -= run.size;
    if (!run.abandoned) this.over(run);
    this.freed(nowMs);
  }

  over(run: Run<In>): void {
    run.isOver = true;
    this.releaseKeys(run);
  }

  releaseKeys(run: Run<In>): void {
    const { isOver, elder, partsLeft, batch } = run.heir ?? run;
    if (isOver && elder?.isOver !== false && partsLeft === 0) this.queue.order?.release(batch);
  }

  /** Every run that has not ended, with those that wait for a slot. */
  #all(): Run<In>[] {
    return [...new Set([...this.#runs, ...(this.turns?.runs ?? [])])];
  }

  /** It takes a slot. Returns how long all runs have taken together. */
  hold(run: Run<In>, nowMs: number): number {
    const together = this.together(nowMs);
    run.heldAtMs = nowMs;
    run.place = this.#runs.push(run) - 1;
    return together;
  }

  leave(run: Run<In>, nowMs: number): void {
    this.together(nowMs);
    const last = this.#runs.pop()!;
    if (last !== run) this.#runs[(last.place = run.place)] = last;
    run.place = -1;
  }

  /** One run of a batch or a part of it, under runTimeoutMs and `limitMs`. */
  attempt(
    run: Run<In>,
    handle: TimedRun,
    entries: readonly Entry<In>[],
    batchRun: BatchRun<In>,
    limitMs: number | undefined,
  ): Promise<unknown> {
    const begin = (): Promise<unknown> => {
      const { arrived } = this.queue;
      const ended = started(batchRun, entries, handle);
      if (this.queue.arrived > arrived) run.hasCalled = true;
      return ended;
    };
    if (this.timeouts === undefined) return begin();
    const { runTimeoutMs } = this.timeouts;
    const reportsStart = batchRun === this.run && this.executor?.reportsStart === true;
    return this.timeouts.attempt(handle, Math.min(limitMs ?? Infinity, runTimeoutMs), reportsStart, begin);
  }

  together(nowMs: number): number {
    this.#togetherMs += this.#runs.length * Math.max(0, nowMs - this.#changedAtMs);
    this.#changedAtMs = nowMs;
    return this.#togetherMs;
  }

  /** The mean number of batches in flight since `startedAtMs`, when all runs together had taken `msBefore`. */
  meanInFlight(startedAtMs: number, msBefore: number, nowMs: number): number {
    return nowMs > startedAtMs ? (this.together(nowMs) - msBefore) / (nowMs - startedAtMs) : this.inFlight;
  }

  learn(run: RunFacts, nowMs: number, hasFailed: boolean = false): void {
    for (const learner of this.learners) learner.learn(run, nowMs, hasFailed);
  }

  record(run: Run<In>, nowMs: number, outcome: BatchRecord["outcome"], hasFailed: boolean, error?: unknown): void {
    const record = run.record(nowMs, this.meanInFlight(run.startedAtMs, run.msBefore, nowMs), outcome, error);
    this.learn(record, nowMs, hasFailed);
    for (const observer of this.observers) observer.observe(record, nowMs, run.batch);
  }
}

/** A sync throw becomes a rejection, a plain value a promise of it. */
function started<In>(batchRun: BatchRun<In>, entries: readonly Entry<In>[], handle: BaseRunHandle): Promise<unknown> {
  try {
    return Promise.resolve(
      batchRun(
        entries.map(({ item }) => item),
        handle,
      ),
    );
  } catch (error) {
    return Promise.reject(error);
  }
}
