import assert from "node:assert/strict";
import { type DetailedResult, BatcherError, type BatchContext } from "../../dist/index.js";
import type { Scenario } from "./scenario.js";

/** An item of a simulation. Items with the same `equal` are the same in everything but `id`. */
export interface Item {
  readonly id: number;
  readonly equal: number | undefined;
  readonly weight: number;
  readonly group: number | undefined;
  readonly tenant: number | undefined;
  readonly order: number | undefined;
  readonly isBad: boolean;
  readonly isAlone: boolean;
  readonly throwsKey: boolean;
}

/** Undefined: its key was missing in the Map. */
export type Result = { readonly of: Item } | undefined;

/** One item's way through the batcher, as its caller sees it. */
export interface Call {
  readonly item: Item;
  /** In order of arrival over all callers. */
  readonly arrival: number;
  readonly madeAtMs: number;
  readonly deadlineAtMs: number;
  readonly signal: AbortSignal | undefined;
  /** Single calls of a batcher without room to wait for: they are in the queue from the call on, or refused. */
  readonly isSingle: boolean;
  /** Undefined while it waits; of a list that tells only its whole outcome it stays so. */
  outcome?: { readonly value: Result } | { readonly reason: unknown };
  /** Its list has ended, or its map was left: its caller has left. */
  isForgotten: boolean;
  startedIn?: number;
}

export interface RunNote {
  readonly batchId: number;
  readonly items: readonly Item[];
  readonly startedAtMs: number;
  readonly isSubRun: boolean;
  endedAtMs?: number;
  failedWith?: unknown;
  /** Told to stop. */
  isAborted: boolean;
  /** It failed, and its items went back to the queue. */
  isPutBack: boolean;
  /** It asked for that in the very moment of its timeout, and may have been heard or not. */
  mayBePutBack?: boolean;
}

/** Moments are sums of fractions where a rate limit made them, and no timer is shorter than a microsecond. */
const roundingMs = 0.0011;
export const weightLimit = 40;
export const keyError = new Error("a key function threw");

/**
 * Watches a simulation from outside: knows the options, what was called and what the batch function saw, nothing of the
 * core. Every method asserts; the message says which promise broke.
 */
export class Checker {
  readonly calls: Call[] = [];
  readonly runs: RunNote[] = [];
  /** Errors in a place of results; an item that runs again may have several. */
  readonly slotErrors: Map<unknown, Item> = new Map();
  /** Items that a Map of results left out. */
  readonly missing: Set<Item> = new Set();
  /** Items that a run answered before it ended. */
  readonly answered: Set<Item> = new Set();
  closedAtMs: number | undefined;
  cutOffAtMs: number | undefined;
  refusedLists = 0;
  readonly #scenario: Scenario;
  readonly #now: () => number;
  readonly #byItem: Map<Item, Call> = new Map();
  readonly #active: Set<RunNote> = new Set();
  readonly #firstOrder: Map<number, number> = new Map();
  readonly #putBackBatches: Set<number> = new Set();
  /** close() has resolved. */
  #overAtMs: number | undefined;
  readonly #spent: { readonly atMs: number; readonly amount: number }[] = [];
  readonly #pauses: { readonly startAtMs: number; readonly endAtMs: number }[] = [];

  constructor(scenario: Scenario, now: () => number) {
    this.#scenario = scenario;
    this.#now = now;
  }

  called(call: Call): void {
    this.calls.push(call);
    this.#byItem.set(call.item, call);
  }

  /** The batch function or runOne was called. */
  started(items: readonly Item[], context: BatchContext): RunNote {
    const { maxBatchSize, concurrency, weights, hasBatchWeight, groups, runTimeoutMs, onBatchError } = this.#scenario;
    const nowMs = this.#now();
    const isSubRun = this.runs.some(({ batchId }) => batchId === context.batchId);
    const note: RunNote = {
      batchId: context.batchId,
      items,
      startedAtMs: nowMs,
      isSubRun,
      isAborted: false,
      isPutBack: false,
    };

    assert.ok(
      items.length >= 1 && items.length <= maxBatchSize,
      `a batch of ${items.length}, maxBatchSize ${maxBatchSize}`,
    );
    assert.equal(context.size, items.length, "context.size");
    const fits = weights === "none" || !hasBatchWeight || items.length === 1 || weightOf(weights, items) <= weightLimit;
    assert.ok(fits, `a batch weighs ${weightOf(weights, items)}`);
    if (items.some(({ isAlone }) => isAlone)) assert.equal(items.length, 1, "an item that is alone shares its batch");
    if (groups > 0) assert.equal(new Set(items.map(({ group }) => group)).size, 1, "groups share a batch");

    const abandoned = [...this.#active].filter((run) => this.#isAbandoned(run, nowMs)).length;
    const running = this.#active.size - abandoned;
    assert.ok(running < concurrency, `${running + 1} runs in flight, concurrency ${concurrency}`);
    if (!isSubRun && runTimeoutMs !== undefined) {
      // A run that is just now as old as its timeout may end in the same moment.
      const past = [...this.#active].filter(
        ({ startedAtMs }) => nowMs - startedAtMs > runTimeoutMs + roundingMs,
      ).length;
      // Of a bisected batch, a run that goes on for an item that was found to hang holds no slot.
      if (onBatchError === "fail") assert.ok(past < concurrency, `a batch started beside ${past} abandoned runs`);
    }
    if (this.cutOffAtMs !== undefined) assert.ok(nowMs <= this.cutOffAtMs, "a batch started after the grace period");
    for (const item of items) this.#checkItem(item, note, nowMs);
    if (!isSubRun) this.#checkRate(items.length, nowMs);
    this.runs.push(note);
    this.#active.add(note);
    return note;
  }

  /**
   * A run would answer one of its items. False: it has ended or was given up, so no caller may get it. Undefined: it ends
   * or is given up in this very moment, and may be heard or not.
   */
  answering(note: RunNote, item: Item): boolean | undefined {
    const nowMs = this.#now();
    const { runTimeoutMs } = this.#scenario;
    const ends = [note.endedAtMs, this.cutOffAtMs, runTimeoutMs && note.startedAtMs + runTimeoutMs];
    if (ends.some((atMs) => atMs !== undefined && Math.abs(nowMs - atMs) <= roundingMs)) return undefined;
    if (note.endedAtMs !== undefined || this.#isAbandoned(note, nowMs)) return false;
    this.answered.add(item);
    return true;
  }

  /** The signal of a run that goes on aborts. */
  aborted(note: RunNote): void {
    note.isAborted = true;
    if (this.#isAbandoned(note, this.#now())) return;
    const whole = this.runs.find(({ batchId }) => batchId === note.batchId)!;
    const unanswered = whole.items.filter((item) => !this.answered.has(item));
    assert.ok(unanswered.length > 0, "a batch whose items were all answered was told to stop");
  }

  /** close() has resolved. */
  closed(): void {
    this.#overAtMs ??= this.#now();
    for (const run of this.#active) {
      const answers = run.items.some((item) => this.answered.has(item));
      const isAwaited = answers && !run.isAborted && !this.#isAbandoned(run, this.#now());
      assert.ok(!isAwaited, `close did not wait for batch ${run.batchId}, which has answered and goes on`);
    }
  }

  ended(note: RunNote, failure?: { readonly error: unknown; readonly isPutBack: boolean }): void {
    note.endedAtMs = this.#now();
    if (failure !== undefined) note.failedWith = failure.error;
    this.#active.delete(note);
    if (failure?.isPutBack === true) this.#putBack(note);
    const pauseMs = (failure?.error as { retryAfterMs?: number } | undefined)?.retryAfterMs;
    if (pauseMs === undefined) return;
    this.#pauses.push({ startAtMs: this.#now(), endAtMs: this.#now() + pauseMs });
  }

  /** A queue is full where it has an end, or where calls may be refused as late. */
  checkFull({ details: { expectedMs, timeoutMs } }: BatcherError): void {
    const { maxQueueSize, refuseLate } = this.#scenario;
    if (expectedMs === undefined) return assert.ok(maxQueueSize < Infinity, "an endless queue is full");
    assert.ok(refuseLate !== undefined && (expectedMs as number) > refuseLate * (timeoutMs as number), "not late");
  }

  /** The result of `detailed` for an item agrees with its batch. */
  toldOf(item: Item, { batchId, batchSize, queueMs, runMs }: DetailedResult<unknown>): void {
    const whole = this.runs.find((run) => run.batchId === batchId);
    assert.ok(whole, `nobody saw batch ${batchId}`);
    assert.ok(
      whole.items.some((other) => isSame(other, item)),
      `item ${item.id} did not ride in batch ${batchId}`,
    );
    assert.equal(batchSize, whole.items.length, "batchSize");
    const call = this.#byItem.get(item)!;
    const waitedMs = Math.max(0, whole.startedAtMs - call.madeAtMs);
    assert.ok(queueMs >= 0 && queueMs <= waitedMs + roundingMs, `queueMs ${queueMs}, seen ${waitedMs}`);
    assert.ok(runMs >= 0 && runMs <= this.#now() - whole.startedAtMs + roundingMs, `runMs ${runMs}`);
  }

  /** A caller has its result or its error. */
  settled(call: Call, outcome: NonNullable<Call["outcome"]>): void {
    assert.equal(call.outcome, undefined, `item ${call.item.id} settled twice`);
    call.outcome = outcome;
    const nowMs = this.#now();
    if ("value" in outcome) {
      this.checkOwn(call, outcome.value);
      assert.ok(
        nowMs <= call.deadlineAtMs + roundingMs,
        `item ${call.item.id} got a result ${nowMs - call.deadlineAtMs} ms after its deadline`,
      );
    } else {
      this.checkReason(call, outcome.reason, nowMs);
    }
  }

  checkOwn({ item }: Call, result: Result): void {
    if (result === undefined) {
      assert.equal(this.#scenario.keyed, "undefined");
      return assert.ok(this.#isMissing(item), `item ${item.id} got undefined`);
    }
    assert.ok(isSame(item, result.of), `item ${item.id} got the result of item ${result.of.id}`);
  }

  /** Every rejection has a cause that the caller or the world gave. */
  checkReason(call: Call, reason: unknown, nowMs: number): void {
    const { item } = call;
    if (reason === keyError) return assert.ok(item.throwsKey, `item ${item.id} has keys`);
    if (call.signal?.aborted === true && reason === call.signal.reason) return;
    const ran = this.runs.filter(({ items }) => items.some((other) => isSame(other, item)));
    if (reason instanceof BatcherError && !ran.some(({ failedWith }) => failedWith === reason)) {
      return this.#checkCode(call, reason, ran, nowMs);
    }
    const ofSlot = this.slotErrors.get(reason);
    if (ofSlot !== undefined && isSame(ofSlot, item)) return;
    assert.ok(!this.answered.has(item), `item ${item.id} was answered and rejected with ${String(reason)}`);
    if (this.#isTooLateForPause(call, reason)) return;
    const failed = ran.filter(({ failedWith }) => failedWith === reason);
    assert.ok(failed.length > 0, `item ${item.id} was rejected with ${String(reason)}, of no run it was in`);
    this.#checkBisection(item, reason, failed[0]!);
  }

  /** Looks at the moment after everything that could happen has happened. */
  atRest(): void {
    const { concurrency, maxWaitMs, rateLimit, onQueueFull, maxQueueSize } = this.#scenario;
    const nowMs = this.#now();
    for (const call of this.calls) {
      if (call.outcome !== undefined || call.isForgotten) continue;
      assert.ok(
        nowMs <= call.deadlineAtMs + roundingMs,
        `item ${call.item.id} is ${nowMs - call.deadlineAtMs} ms past its deadline`,
      );
      if (call.isSingle && this.answered.has(call.item))
        assert.fail(`item ${call.item.id} was answered and still waits`);
      if (call.isSingle && call.signal?.aborted === true)
        assert.fail(`item ${call.item.id} was aborted and still waits`);
    }
    const abandoned = [...this.#active].filter((run) => this.#isAbandoned(run, nowMs)).length;
    const isFree = this.#active.size - abandoned < concurrency && abandoned < concurrency;
    const neverFull = maxQueueSize === Infinity || onQueueFull === "reject";
    if (
      !isFree ||
      maxWaitMs === undefined ||
      rateLimit !== undefined ||
      this.#pauses.some(({ endAtMs }) => nowMs < endAtMs) ||
      !neverFull
    )
      return;
    for (const call of this.calls) {
      if (!call.isSingle || call.outcome !== undefined || this.#hasStarted(call) || this.#isBlocked(call)) continue;
      const heldMs = nowMs - call.madeAtMs;
      assert.ok(
        heldMs <= maxWaitMs + roundingMs,
        `item ${call.item.id} is held ${heldMs} ms with a slot free, maxWaitMs ${maxWaitMs}`,
      );
    }
  }

  /** A run that failed has asked for a pause. */
  get hasPaused(): boolean {
    return this.#pauses.length > 0;
  }

  /** Runs that will never end by themselves. */
  get unended(): number {
    return this.#active.size;
  }

  /** Of a part of a bisection, with all that is left of its batch. The items of a run that was given up have left it. */
  #putBack(note: RunNote): void {
    const { runTimeoutMs = Infinity } = this.#scenario;
    const ranMs = this.#now() - note.startedAtMs;
    // A closed batcher times no run, and one that closes in the moment of its timeout may or may not.
    const isTimed = this.#overAtMs === undefined || this.#overAtMs - note.startedAtMs > runTimeoutMs + roundingMs;
    note.mayBePutBack = !isTimed || Math.abs(ranMs - runTimeoutMs) <= roundingMs;
    if (ranMs >= runTimeoutMs - roundingMs) return;
    note.isPutBack = true;
    this.#putBackBatches.add(note.batchId);
    const whole = this.runs.find(({ batchId }) => batchId === note.batchId)!;
    for (const item of whole.items) {
      const last = item.order === undefined ? undefined : this.#firstOrder.get(item.order);
      const { arrival } = this.#byItem.get(item)!;
      if (last !== undefined && arrival <= last) this.#firstOrder.set(item.order!, arrival - 1);
    }
  }

  /** One that waits, too, gets the error of a run that was put back, where its deadline comes before the pause has ended. */
  #isTooLateForPause({ deadlineAtMs }: Call, reason: unknown): boolean {
    const isOfPutBack = this.runs.some(
      ({ isPutBack, mayBePutBack, failedWith }) => (isPutBack || mayBePutBack === true) && failedWith === reason,
    );
    return isOfPutBack && this.#pauses.some(({ endAtMs }) => deadlineAtMs <= endAtMs + roundingMs);
  }

  #checkItem(item: Item, note: RunNote, nowMs: number): void {
    const call = this.#byItem.get(item);
    assert.ok(call !== undefined, "a batch holds an item that nobody called with");
    const earlier = this.runs.findLast(({ items }) => items.includes(item));
    const wasPutBack = earlier !== undefined && this.#putBackBatches.has(earlier.batchId);
    const isFromHung = (run: RunNote): boolean =>
      this.#scenario.onBatchError === "bisect" && this.#isAbandoned(run, nowMs) && run.items.includes(item);
    if (!wasPutBack && !(earlier !== undefined && isFromHung(earlier)))
      assert.equal(earlier?.batchId ?? note.batchId, note.batchId, `item ${item.id} ran in two batches`);
    call.startedIn ??= note.batchId;
    assert.ok(!this.answered.has(item), `item ${item.id} ran again after it was answered`);
    const sharers = this.calls.filter((other) => isSame(other.item, item));
    const isWanted = sharers.some(
      (other) =>
        (other.outcome === undefined || other.isForgotten) &&
        other.signal?.aborted !== true &&
        nowMs <= other.deadlineAtMs + roundingMs,
    );
    assert.ok(isWanted, `item ${item.id} ran though every caller of it had gone`);

    this.#checkJoined(item, note, nowMs);
    if (item.order === undefined) return;
    for (const run of this.#active) {
      const holds =
        run.batchId !== note.batchId && run.items.some(({ order }) => order === item.order) && !isFromHung(run);
      assert.ok(!holds, `key ${item.order} is in batches ${run.batchId} and ${note.batchId} at once`);
    }
    if (note.isSubRun) return;
    const last = this.#firstOrder.get(item.order) ?? -1;
    // One that was put back stands where the caller came who has it now.
    const heirs = wasPutBack ? sharers.filter(({ outcome, isForgotten }) => outcome === undefined && !isForgotten) : [];
    const heirAt = Math.min(...heirs.map(({ arrival }) => arrival));
    const isInTurn = call.arrival > last || (heirs.length > 0 && heirAt > last);
    assert.ok(isInTurn, `item ${item.id} overtook a later one of key ${item.order}`);
    // An earlier item of the key that waits would be overtaken; one that has gone, or that shares a later slot, would not.
    this.#firstOrder.set(item.order, Math.max(last, call.arrival));
  }

  /** No item runs beside an equal one that somebody waits for who came before that began. */
  #checkJoined(item: Item, note: RunNote, nowMs: number): void {
    const { joinsRuns, orders, onQueueFull } = this.#scenario;
    // Calls that wait for room are in no run yet, and cannot be told apart from outside.
    if (item.equal === undefined || !joinsRuns || orders > 0 || onQueueFull === "wait") return;
    for (const run of this.#active) {
      // Calls do not join a run that was given up, or the runs that search its items.
      const isGivenUp = this.runs.some(
        (some) =>
          (some.batchId === run.batchId || some.batchId === note.batchId) &&
          this.#isAbandoned(some, some.endedAtMs ?? nowMs),
      );
      const isOther = run.batchId !== note.batchId && !isGivenUp;
      const equal = run.items.find((other) => isSame(other, item));
      // One that was answered is no longer joined, though its caller gets it a few promises later.
      if (!isOther || equal === undefined || this.answered.has(equal)) continue;
      const waiting = this.calls.find(
        (call) =>
          call.isSingle && isSame(call.item, item) && call.madeAtMs < run.startedAtMs && call.outcome === undefined,
      );
      if (waiting === undefined || waiting.signal?.aborted === true || waiting.deadlineAtMs <= nowMs) continue;
      assert.fail(
        `item ${item.id} runs beside its equal in batch ${run.batchId}, that item ${waiting.item.id} waits for`,
      );
    }
  }

  #checkRate(items: number, nowMs: number): void {
    // Not in the moment of the failure itself, which reaches the batcher some microtasks after the run has ended.
    const pause = this.#pauses.find(({ startAtMs, endAtMs }) => nowMs > startAtMs && nowMs < endAtMs - roundingMs);
    assert.ok(pause === undefined, `a batch started at ${nowMs} ms, in the pause until ${pause?.endAtMs} ms`);
    const { rateLimit } = this.#scenario;
    if (rateLimit === undefined) return;
    const most = rateLimit.runs ?? rateLimit.items!;
    this.#spent.push({ atMs: nowMs, amount: rateLimit.runs === undefined ? items : 1 });
    const inPeriod = this.#spent.filter(({ atMs }) => nowMs - atMs < rateLimit.perMs - roundingMs);
    const sum = inPeriod.reduce((total, { amount }) => total + amount, 0);
    assert.ok(sum <= most, `${sum} went in a period of ${rateLimit.perMs} ms, ${most} may`);
  }

  #checkCode(call: Call, error: BatcherError, ran: readonly RunNote[], nowMs: number): void {
    const { code } = error;
    const { item } = call;
    const { runTimeoutMs } = this.#scenario;
    if (code === "RUN_TIMEOUT" || code === "RESULT_COUNT") {
      assert.ok(!this.answered.has(item), `item ${item.id} was answered and rejected with ${code}`);
    }
    if (code === "TIMEOUT") {
      const isPredicted = error.details["predicted"] === true;
      assert.ok(
        call.deadlineAtMs < Infinity && (isPredicted || nowMs >= call.deadlineAtMs - roundingMs),
        `item ${item.id}: TIMEOUT too early: made at ${call.madeAtMs}, deadline ${call.deadlineAtMs}, now ${nowMs}: ${error.message}`,
      );
      assert.ok(
        nowMs <= call.deadlineAtMs + roundingMs,
        `item ${item.id}: TIMEOUT ${nowMs - call.deadlineAtMs} ms late`,
      );
    } else if (code === "QUEUE_FULL") {
      this.checkFull(error);
    } else if (code === "CLOSED") {
      assert.ok(this.closedAtMs !== undefined, `item ${item.id}: CLOSED by an open batcher`);
      const isCutOff = this.cutOffAtMs !== undefined && nowMs >= this.cutOffAtMs;
      assert.ok(isCutOff || call.madeAtMs >= this.closedAtMs, `item ${item.id}: CLOSED though it came in time`);
    } else if (code === "ITEM_TOO_LARGE") {
      const { maxItemWeight = Infinity } = this.#scenario;
      assert.ok(this.#scenario.weights !== "none" && item.weight > maxItemWeight, `item ${item.id} is not too large`);
    } else if (code === "RUN_TIMEOUT") {
      assert.ok(runTimeoutMs !== undefined, `item ${item.id}: RUN_TIMEOUT without runTimeoutMs`);
      if (error.details["hungRuns"] !== undefined) {
        const hung = [...this.#active].filter((run) => this.#isAbandoned(run, nowMs)).length;
        return assert.ok(hung >= this.#scenario.concurrency, `item ${item.id} was refused beside ${hung} hung runs`);
      }
      assert.ok(ran.length > 0, `item ${item.id}: RUN_TIMEOUT without a run`);
      const late = ran.some(({ startedAtMs }) => nowMs - startedAtMs >= runTimeoutMs - roundingMs);
      assert.ok(late, `item ${item.id}: RUN_TIMEOUT too early`);
    } else if (code === "RESULT_COUNT") {
      assert.ok(ran.length > 0 && this.#scenario.run.shortRate > 0, `item ${item.id}: RESULT_COUNT`);
    } else if (code === "MISSING_RESULT") {
      assert.equal(this.#scenario.keyed, "error");
      assert.ok(this.#isMissing(item), `item ${item.id}: MISSING_RESULT though its key was there`);
    } else {
      assert.fail(`item ${item.id} was rejected with ${code}`);
    }
  }

  /** With at most 4 bad items in a batch exactly those fail. */
  #checkBisection(item: Item, reason: unknown, failed: RunNote): void {
    const { onBatchError, maxBisectRuns, runTimeoutMs } = this.#scenario;
    const isItemsFault = reason instanceof BadItemError;
    if (onBatchError !== "bisect" || maxBisectRuns !== undefined || !isItemsFault || item.isBad) return;
    const runs = this.runs.filter(({ batchId }) => batchId === failed.batchId);
    const bad = runs[0]!.items.filter(({ isBad }) => isBad).length;
    const othersFault = runs.some(
      ({ failedWith }) => failedWith !== undefined && !(failedWith instanceof BadItemError),
    );
    if (runTimeoutMs !== undefined || othersFault) return;
    assert.ok(bad > 4, `item ${item.id} is good and failed for one of ${bad} bad items`);
  }

  /** Extra runs of every bisection stay within their bound. */
  checkBisectBounds(): void {
    const runsOf = new Map<number, RunNote[]>();
    for (const run of this.runs) runsOf.set(run.batchId, [...(runsOf.get(run.batchId) ?? []), run]);
    for (const [batchId, runs] of runsOf) {
      const bound = this.#scenario.maxBisectRuns ?? 8 * Math.ceil(Math.log2(runs[0]!.items.length));
      const extra = runs.length - 1;
      if (this.#scenario.onBatchError === "fail") assert.equal(extra, 0, `batch ${batchId} ran again`);
      assert.ok(extra <= bound, `batch ${batchId}: ${extra} extra runs, ${bound} may`);
    }
  }

  #isAbandoned(run: RunNote, nowMs: number): boolean {
    const { runTimeoutMs } = this.#scenario;
    if (this.cutOffAtMs !== undefined && nowMs >= this.cutOffAtMs) return true;
    return runTimeoutMs !== undefined && nowMs - run.startedAtMs >= runTimeoutMs - roundingMs;
  }

  #isMissing(item: Item): boolean {
    return [...this.missing].some((other) => isSame(other, item));
  }

  #hasStarted(call: Call): boolean {
    return this.runs.some(({ items }) => items.some((item) => isSame(item, call.item)));
  }

  #isBlocked({ item }: Call): boolean {
    if (item.order === undefined) return false;
    // Also an item behind an earlier one of its key: what holds that back holds this back.
    return true;
  }
}

/** What a batch weighs, as its scenario counts. */
export function weightOf(counted: Scenario["weights"], items: readonly Item[]): number {
  const weights = items.map(({ weight }) => weight);
  if (counted === "padded") return Math.max(...weights) * weights.length;
  return weights.reduce((sum, weight) => sum + weight, 0);
}

export class BadItemError extends Error {}

const isSame = (one: Item, other: Item): boolean =>
  one === other || (one.equal !== undefined && one.equal === other.equal);
