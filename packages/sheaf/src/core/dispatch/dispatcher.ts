import type { CostModel } from "../../policies/cost-model.ts";
import type { BatchRecord, DispatchReason, SizeReason } from "../../policies/policy.ts";
import { Bisector, mayBeOfItems } from "./bisect.ts";
import type { Settlement } from "../queue/settlement.ts";
import type { Chunk } from "../queue/chunk.ts";
import { resultsInOrder, Run, sumOf, type RunFacts } from "./run.ts";
import type { BatcherError } from "../contract/errors.ts";
import type { Executor } from "../contract/executor.ts";
import type { Queue } from "../queue/queue.ts";
import { putBack } from "./put-back.ts";
import type { Throttle } from "./rate-limit.ts";
import { RunTimeouts } from "./run-timeouts.ts";
import type { Scheduler } from "./scheduler.ts";
import type { BaseRunHandle } from "../contract/base-run-handle.ts";
import type { Settings } from "../contract/settings.ts";

/** Gets the record of each batch once it has its outcome, in the same turn as its last callers. */
export interface BatchObserver {
  observe(record: BatchRecord, nowMs: number): void;
}

/** Gets each record before the observers do, and each run of a part of a batch that passed: what runs cost is learned from them. */
export interface Learner {
  /** `hasFailed`: the run itself did, not one of its items that may be to blame, and they were not put back. */
  learn(run: RunFacts, nowMs: number, hasFailed: boolean): void;
}

/** The batch function, or the run of an executor. */
export type BatchRun<In> = (items: In[], handle: BaseRunHandle) => unknown;

/** A batch that goes ahead as late as possible leaves this share of a run before its slot is free, and at least `leastLeadMs`. */
const leadShare = 0.1;
const leastLeadMs = 2;

/** Runs batches, each in one slot until its bisection is over, and passes their outcome to the callers. */
export class Dispatcher<In, Out> {
  /** Batches so far; the last one has this id. */
  started = 0;
  /** Items in them. */
  running = 0;
  /** Further runs of parts of batches. */
  bisectRuns = 0;
  readonly learners: Learner[] = [];
  readonly observers: BatchObserver[] = [];
  /** Is told when a slot may be free again, and when a run begins. */
  scheduler: Pick<Scheduler<In, Out>, "freed" | "began"> | undefined;
  /** Until the executor is ready, nothing is dispatched. */
  #state: "starting" | "open" | "stopped" = "starting";
  readonly #run: BatchRun<In>;
  readonly #executor: Pick<Executor<In, Out>, "reportsStart"> | undefined;
  readonly #settings: Settings<In, Out>;
  readonly #calls: Settlement<In>;
  readonly #queue: Queue<In>;
  readonly #throttle: Throttle;
  readonly #runs: Run<In>[] = []; // in no order; each knows its place
  /** Milliseconds that all runs have taken together, until the moment of the last change. */
  #togetherMs = 0;
  #changedAtMs = 0;
  readonly inOrder: (results: unknown, items: readonly In[], handle: BaseRunHandle) => ArrayLike<unknown>;
  readonly #bisector: Bisector<In, Out> | undefined;
  readonly #timeouts: RunTimeouts<In> | undefined;

  constructor(
    run: BatchRun<In>,
    executor: Pick<Executor<In, Out>, "reportsStart"> | undefined,
    settings: Settings<In, Out>,
    calls: Settlement<In>,
    queue: Queue<In>,
    throttle: Throttle,
  ) {
    this.#run = run;
    this.#executor = executor;
    this.#settings = settings;
    this.#calls = calls;
    this.#queue = queue;
    this.#throttle = throttle;
    this.inOrder = resultsInOrder(settings);
    this.#bisector = settings.onBatchError === "bisect" ? new Bisector<In, Out>(run, settings, calls, this) : undefined;
    this.#timeouts =
      settings.runTimeoutMs === undefined
        ? undefined
        : new RunTimeouts<In>(settings, settings.runTimeoutMs, queue.order, this);
  }

  /** Runs that were abandoned and have not ended. */
  get abandonedNow(): number {
    return this.#timeouts?.abandonedNow ?? 0;
  }

  get abandonedRuns(): number {
    return this.#timeouts?.abandonedRuns ?? 0;
  }

  /** Batches that hold a slot. */
  get inFlight(): number {
    return this.#runs.length;
  }

  /** Batches that may start now. */
  get freeSlots(): number {
    const { limit: concurrency } = this.#settings.slots;
    return this.#state !== "open" || this.abandonedNow >= concurrency ? 0 : concurrency - this.inFlight;
  }

  /** Whether a busy slot may take one more batch ahead, where its executor does. */
  get takesAhead(): boolean {
    const { slots, prefetch } = this.#settings;
    return this.#state === "open" && this.abandonedNow === 0 && this.inFlight < slots.limit * (1 + prefetch);
  }

  open(): void {
    if (this.#state === "starting") this.#state = "open";
  }

  stop(): void {
    this.#state = "stopped";
    this.#throttle.seat?.leave();
  }

  // What a run reports before its outcome.

  /** It begins, where its executor reports that. Returns the time. */
  began(): number {
    this.scheduler?.began();
    return this.#settings.clock.now();
  }

  /** Stops dispatch for `ms`, like an error with `retryAfterMs`. */
  paused(durationMs: number): void {
    this.#throttle.pause(durationMs);
  }

  /** It calls its service again for `items` of its items. Returns the time. */
  retried(items: number, weight: number, bulkRate: number, isPart: boolean): number {
    const nowMs = this.#settings.clock.now();
    if (isPart) this.ranAgain(items, weight, bulkRate, nowMs);
    else this.#throttle.seat?.spend(nowMs, items, weight, bulkRate);
    return nowMs;
  }

  /** Adds `difference`, which may be negative, to the weight that `rateLimit` counted for the last run. */
  weighed(difference: number): void {
    this.#throttle.seat?.correct(this.#settings.clock.now(), difference);
  }

  /** It answers one of its items early. */
  answered(calls: Chunk<In>, index: number, result: unknown): void {
    this.#calls.settle(calls, index, result);
  }

  /** A batch or a part of one failed with this error. One in an item's place is that item's: it pauses nobody. */
  failed(error: unknown): void {
    this.#throttle.failed(error);
  }

  /** A bisection runs some items of a batch again. */
  ranAgain(items: number, weight: number, bulkRate: number, nowMs: number): void {
    this.bisectRuns++;
    this.#throttle.seat?.spend(nowMs, items, weight, bulkRate);
  }

  freed(nowMs: number): void {
    this.scheduler?.freed(nowMs);
  }

  start(
    batch: Chunk<In>,
    reason: DispatchReason,
    sizeReason: SizeReason,
    group: unknown,
    weight: number,
    nowMs: number,
  ): void {
    const run = new Run<In>(++this.started, batch, weight, reason, sizeReason, group, nowMs, this);
    if (batch.weights !== undefined) run.weights = { sum: sumOf(batch.weights), heaviest: batch.heaviest };
    batch.run = run;
    this.running += run.size;
    run.msBefore = this.together(nowMs);
    run.place = this.#runs.push(run) - 1;
    // An await in a function of its own would take half as long again.
    this.attempt(run, run, batch.items, this.#run).then(
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
    return this.#state === "open" && this.inFlight === 0 && this.abandonedNow >= this.#settings.slots.limit;
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
    if (this.#executor?.reportsStart !== true) return -Infinity;
    const momentsAtMs = this.#runs.map((run) => {
      if (!run.hasBegun) return Infinity;
      const expectedMs = run.expectedMs(cost);
      return run.beganAtMs + expectedMs - Math.max(leastLeadMs, leadShare * expectedMs);
    });
    return momentsAtMs.sort((a, b) => a - b)[this.inFlight - this.#settings.slots.limit]!;
  }

  /** Rejects every caller in flight and aborts the runs; their slots are not reused. */
  cutOff(error: BatcherError): void {
    for (const run of this.#runs) {
      this.#calls.failAll(run.calls, error, "rejected");
      run.abort(error);
    }
  }

  /** Once the batcher is closed: the timer of a run that goes on would keep the process alive. */
  stopTimers(): void {
    this.#timeouts?.close();
    for (const run of this.#runs) run.stopTimer?.();
  }

  /**
   * Resolves when every run has ended that goes on after its callers were answered; an aborted one is not waited for.
   */
  async answeringRunsEnded(): Promise<void> {
    for (;;) {
      const run = this.#runs.find((each) => each.unanswered() !== undefined && each.aborted === undefined);
      if (run === undefined) return;
      await new Promise<void>((resolve) => (run.whenOver = resolve));
    }
  }

  #ran(run: Run<In>, returned: unknown): void {
    const { calls: batch } = run;
    const { tally } = this.#calls;
    let results: ArrayLike<unknown>;
    try {
      results = this.inOrder(returned, batch.items, run);
    } catch (error) {
      return void this.#failed(run, error);
    }
    const nowMs = this.#settings.clock.now();
    const failedBefore = tally.error;
    this.#measured(run, nowMs);
    try {
      this.#calls.settleAll(batch, results, nowMs);
      for (let i = 0; tally.error > failedBefore && i < results.length; i++)
        if (results[i] instanceof Error && !run.isAnswered(i)) run.failedItems++;
    } catch (error) {
      // An entry could not be read: a Proxy, or a getter that throws.
      this.restFailed(run, error);
    }
    this.#record(run, nowMs, run.extraRuns > 0 ? "partial" : "ok", false);
    this.#end(run, nowMs);
  }

  async #failed(run: Run<In>, error: unknown): Promise<void> {
    let nowMs = this.#settings.clock.now();
    this.failed(error);
    if (!run.abandoned && run.isPutBack) {
      this.#measured(run, nowMs);
      this.#record(run, nowMs, "refused", false, error);
      this.putBack(run, error);
    } else {
      const bisector = !run.abandoned && this.#bisector?.mayBisect(error) === true ? this.#bisector : undefined;
      if (bisector !== undefined) {
        await bisector.bisect(run, error);
        nowMs = this.#settings.clock.now();
      } else {
        this.#measured(run, nowMs);
        this.restFailed(run, error);
      }
      const isRefused = run.isPutBack && !run.abandoned;
      // Items are to blame where a bisection told them from others; without one, where they can be.
      const isOfItems =
        !run.abandoned && (bisector === undefined ? mayBeOfItems(error) : run.passedItems > 0 && run.failedItems > 0);
      const outcome = isRefused ? "refused" : run.passedItems > 0 ? "partial" : "error";
      this.#record(run, nowMs, outcome, !isRefused && !isOfItems, error);
    }
    this.#end(run, nowMs);
  }

  /** The run of a batch has ended; where parts of it ran, only all of them together have a time that is the batch's. */
  #measured(run: Run<In>, nowMs: number): void {
    if (run.extraRuns > 0) run.runMs = nowMs - run.startedAtMs;
    else run.runMs ??= nowMs - run.beganAtMs;
  }

  restFailed(run: Run<In>, error: unknown): void {
    for (const settler of run.calls.settlers) if (settler !== undefined) run.failedItems++;
    this.#calls.failAll(run.calls, error);
  }

  putBack(run: Run<In>, error: unknown): void {
    putBack(run, error, this.#queue, this.#throttle, this.#settings.maxPauseMs);
  }

  #end(run: Run<In>, nowMs: number): void {
    run.whenOver?.();
    this.together(nowMs);
    const last = this.#runs.pop()!;
    if (last !== run) this.#runs[(last.place = run.place)] = last;
    this.running -= run.size;
    if (!run.abandoned) this.#queue.order?.release(run.calls);
    this.freed(nowMs);
  }

  /** One run of a batch or a part of it, under runTimeoutMs. */
  attempt(run: Run<In>, handle: BaseRunHandle, items: readonly In[], batchRun: BatchRun<In>): Promise<unknown> {
    const begin = (): Promise<unknown> => {
      const { arrived } = this.#queue;
      const ended = started(batchRun, items, handle);
      if (this.#queue.arrived > arrived) run.hasCalled = true;
      return ended;
    };
    return this.#timeouts === undefined
      ? begin()
      : this.#timeouts.attempt(run, batchRun === this.#run && this.#executor?.reportsStart === true, begin);
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

  #record(run: Run<In>, nowMs: number, outcome: BatchRecord["outcome"], hasFailed: boolean, error?: unknown): void {
    const record = run.record(nowMs, this.meanInFlight(run.startedAtMs, run.msBefore, nowMs), outcome, error);
    for (const learner of this.learners) learner.learn(record, nowMs, hasFailed);
    for (const observer of this.observers) observer.observe(record, nowMs);
  }
}

/** A sync throw becomes a rejection, a plain value a promise of it. */
function started<In>(batchRun: BatchRun<In>, items: readonly In[], handle: BaseRunHandle): Promise<unknown> {
  try {
    // The batch function may change its array; results by key and a bisection need the items again.
    return Promise.resolve(batchRun(items.slice(), handle));
  } catch (error) {
    return Promise.reject(error);
  }
}
