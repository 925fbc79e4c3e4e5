import type { CostModel } from "../../policies/cost-model.ts";
import type { Batch, Entry } from "../queue/entry.ts";
import { BatcherError } from "../contract/errors.ts";
import { isPromiseLike, type BaseRunHandle } from "../contract/base-run-handle.ts";
import { warnOnce } from "../runtime/warnings.ts";
import type { BatchRecord } from "../../policies/policy.ts";
import { describe } from "../../shared/describe.ts";
import type { Settings } from "../contract/settings.ts";
import type { Throttle } from "./throttle.ts";
import { TimedRun } from "./timed-run.ts";

/** What a run reports before its outcome. */
export interface RunReports<In> {
  readonly throttle: Throttle;
  /** It begins, where its executor reports that. Returns the time. */
  began(): number;
  /** It calls its service again for `items` of its items. Returns the time. */
  retried(items: number, weight: number, bulkRate: number, isPart: boolean): number;
  /** It answers one of its items early. */
  answered(batch: Batch<In>, index: number, result: unknown): void;
  /** It has ended, perhaps after it was given up. */
  over(run: Run<In>): void;
  /** Frees a batch's order keys when its last run has ended. */
  releaseKeys(run: Run<In>): void;
}

/** The batch function, or the run of an executor. */
export type BatchRun<In> = (items: In[], handle: BaseRunHandle) => unknown;

/** What is learned from a run. */
export type RunFacts = Pick<BatchRecord, "size" | "weights" | "startedAtMs" | "inFlight" | "runMs" | "outcome">;

/** How a batch was dispatched. */
export type Dispatched = Pick<BatchRecord, "batchId" | "reason" | "sizeReason" | "weight" | "group" | "startedAtMs">;

/** One batch in flight. */
export class Run<In> extends TimedRun {
  readonly dispatched: Dispatched;
  readonly batch: Batch<In>;
  readonly startedAtMs: number;
  /** Start of the attempt that is timed: a pause before another attempt does not count as run time. */
  beganAtMs: number;
  /** Its executor has reported its start; one that went ahead to a busy slot begins later than it was dispatched. */
  hasBegun = false;
  /** Milliseconds of all runs together until it started. */
  msBefore = 0;
  /** Its index among the runs in flight; -1 for one that has no slot. */
  place = -1;
  heldAtMs = 0;
  /** Once it is given up, its callers have their error, or `heir` runs their items again. */
  heir: Run<In> | undefined;
  /** The run that it is the heir of. */
  elder: Run<In> | undefined;
  /** It goes on without callers: what they left would hang another run. */
  outlivesCallers = false;
  /** Neither it nor what it became runs any more: its order keys are free. */
  isOver = false;
  /** Parts of it that were given up and have not ended. */
  partsLeft = 0;
  /** Its batch function called this batcher, before it returned its promise: it may wait for itself. */
  hasCalled = false;
  /** If it fails, its items go back to the queue. */
  isPutBack = false;
  /** Items that have their results although it failed: answered early, or by a run of a part. */
  passedItems = 0;
  failedItems = 0;
  /** Runs of a part of it. */
  extraRuns = 0;
  /** How long its parts have waited for a slot. */
  searchWaitMs = 0;
  /** The weight that `rateLimit` counted for the part of it that runs now. */
  counted: number;
  /** Called when it ends, aborts or is abandoned. */
  whenOver: (() => void) | undefined;
  readonly #dispatcher: RunReports<In>;

  constructor(dispatched: Dispatched, batch: Batch<In>, dispatcher: RunReports<In>) {
    super(dispatched.batchId, batch.entries.length);
    this.dispatched = dispatched;
    this.batch = batch;
    this.counted = dispatched.weight;
    this.startedAtMs = this.beganAtMs = dispatched.startedAtMs;
    this.#dispatcher = dispatcher;
  }

  override pause(durationMs: number): void {
    this.#dispatcher.throttle.pause(durationMs);
  }

  override countRun(items: number = this.size): void {
    this.attempt++;
    this.counted = (this.dispatched.weight * items) / this.size;
    if (items < this.size) this.extraRuns++;
    this.beganAtMs = this.#dispatcher.retried(items, this.counted, this.bulkRate, items < this.size);
  }

  override reportWeight(weight: number): void {
    super.reportWeight(weight);
    this.#dispatcher.throttle.correct(weight - this.counted);
    this.counted = weight;
  }

  override putBack(): void {
    this.isPutBack = true;
  }

  override started(): void {
    this.hasBegun = true;
    this.beganAtMs = this.#dispatcher.began();
    super.started();
  }

  override deliver(index: number, result: unknown): boolean {
    if (!super.deliver(index, result)) return false;
    this.itemEnded(result);
    this.#dispatcher.answered(this.batch, index, result);
    return true;
  }

  /** An item has its result although its batch has not ended, or not well. */
  itemEnded(result: unknown): void {
    if (result instanceof Error) this.failedItems++;
    else this.passedItems++;
  }

  get hasSlot(): boolean {
    return this.place >= 0;
  }

  /** The part of its items that are bulk. */
  get bulkRate(): number {
    return this.batch.bulk / this.size;
  }

  expectedMs(cost: CostModel): number {
    const { size, batch } = this;
    const { weights } = batch;
    return weights === undefined ? cost.at(size) : cost.of(size, weights.sum, weights.heaviest);
  }

  /** The record of its batch; `inFlight`: on average while it ran. */
  record(nowMs: number, inFlight: number, outcome: BatchRecord["outcome"], error: unknown): BatchRecord {
    const { size, batch, startedAtMs, extraRuns, attempt } = this;
    // By name: a record made by a spread is slow to read, which tripled the cost of a call.
    const { batchId, reason, sizeReason, weight, group } = this.dispatched;
    const tookMs = nowMs - startedAtMs;
    return {
      batchId,
      reason,
      sizeReason,
      size,
      weight,
      weights: batch.weights,
      group,
      startedAtMs,
      queueWaitMs: queueWait(batch, startedAtMs),
      inFlight,
      runMs: this.runMs ?? tookMs,
      tookMs,
      outcome,
      failedItems: outcome === "error" ? size : this.failedItems,
      extraRuns,
      errorCode: error !== undefined && error instanceof BatcherError ? error.code : undefined,
      attempt,
      tags: tagsOf(batch),
    };
  }

  override givenUp(reason: unknown): void {
    super.givenUp(reason);
    // It cannot be joined: an equal item starts a run of its own.
    for (const entry of this.batch.entries) entry.ties?.equal?.leave(entry);
    this.abort(reason);
  }

  endedLate(): void {
    this.#dispatcher.over(this);
  }

  /** A part of it was given up (1), or has ended after that (-1). */
  partLeft(change: 1 | -1): void {
    this.partsLeft += change;
    if (change < 0) this.#dispatcher.releaseKeys(this);
  }

  abandonedByAll(): void {
    if (!this.outlivesCallers) this.abort(new BatcherError("CLOSED", "Every caller of the batch has left."));
  }

  override abort(reason: unknown): void {
    super.abort(reason);
    this.whenOver?.();
  }
}

function queueWait<In>({ entries }: Batch<In>, startedAtMs: number): BatchRecord["queueWaitMs"] {
  let total = 0;
  let earliest = startedAtMs;
  for (const { terms } of entries) {
    const { arrivedAtMs } = terms;
    total += Math.max(0, startedAtMs - arrivedAtMs); // a caller who joined it while it ran did not wait
    if (arrivedAtMs < earliest) earliest = arrivedAtMs;
  }
  return { mean: total / entries.length, max: startedAtMs - earliest };
}

/** The tags of its calls, also of those that share an item. */
function tagsOf<In>({ entries }: Batch<In>): unknown[] | undefined {
  let tags: unknown[] | undefined;
  for (const { terms, ties } of entries) {
    if (terms.tag !== undefined) (tags ??= []).push(terms.tag);
    for (const sharer of ties?.sharers ?? none)
      if (sharer.terms.tag !== undefined) (tags ??= []).push(sharer.terms.tag);
  }
  return tags;
}

const none: readonly never[] = [];

const orMap = ", or a Map of results by key";

/** Puts the results of batch functions in the order of their items, and checks them. */
export function resultsInOrder<In>({
  name,
  resultKey = (item) => item,
  onMissing,
}: Pick<Settings<In, unknown>, "name" | "resultKey" | "onMissing">): (
  results: unknown,
  entries: readonly Entry<In>[],
  handle: Pick<BaseRunHandle, "unanswered">,
) => ArrayLike<unknown> {
  const warn = warnOnce();
  return (results, entries, handle) => {
    if (!(results instanceof Map)) return checkResults(results, entries.length, name, handle.unanswered(), orMap);
    refusePromises([...results.values()], name);
    let isHit = false;
    const found = entries.map(({ item }): unknown => {
      let key: unknown;
      try {
        key = resultKey(item);
      } catch (error) {
        return error instanceof Error ? error : new Error(`resultKey threw ${describe(error)}`);
      }
      if (results.has(key)) {
        isHit = true;
        return results.get(key);
      }
      if (onMissing !== "error") return undefined;
      return new BatcherError("MISSING_RESULT", `${name}: the batch function's Map has no key ${describe(key)}`, {
        key,
      });
    });
    // An empty Map means that nothing was found; one with other keys, that they are of another kind.
    if (!isHit && results.size > 0) {
      warn(`${name}: no item has a key of the Map that the batch function returned: set resultKey`);
    }
    return found;
  };
}

/**
 * Checks the results of a batch function: one per item, in order. `open` are the items that it has not answered early; where
 * there are none it may return anything.
 */
export function checkResults(
  results: unknown,
  size: number,
  name: string,
  open?: readonly number[],
  alternative: string = "",
): ArrayLike<unknown> {
  if (open?.length === 0) return [];
  if (typeof results === "string" || !isArrayLike(results)) {
    throw new TypeError(
      `${name}: the batch function must return an array with one result per item${alternative}, got ${describe(results)}`,
    );
  }
  if (results.length !== size) {
    throw new BatcherError(
      "RESULT_COUNT",
      `${name}: the batch function returned ${results.length} results for ${size} items. ` +
        "Return one result per item, in the order of the items, including those answered early; put an Error in the place of an item " +
        "that failed.",
      { expected: size, received: results.length },
    );
  }
  refusePromises(results, name);
  return results;
}

/** @throws {TypeError} one of them is a promise: what it waits for would go on after the run has ended. */
function refusePromises(results: ArrayLike<unknown>, name: string): void {
  let hasOne = false;
  for (let i = 0; i < results.length; i++) {
    if (!isPromiseAt(results, i)) continue;
    hasOne = true;
    // Nobody waits for it any more: its failure must not end the process.
    if (results[i] instanceof Promise) (results[i] as Promise<unknown>).catch(() => undefined);
  }
  if (!hasOne) return;
  throw new TypeError(
    `${name}: the batch function returned promises in place of results. Await them inside it, as with Promise.all, so that they ` +
      "are part of the run.",
  );
}

function isPromiseAt(results: ArrayLike<unknown>, index: number): boolean {
  try {
    return isPromiseLike(results[index]);
  } catch {
    return false; // a getter that throws: its caller gets that error
  }
}

/** The same results, with the error of its reading in the place of one that cannot be read. */
export const eachRead = (results: ArrayLike<unknown>, count: number): unknown[] =>
  Array.from({ length: count }, (_, index) => {
    try {
      return results[index];
    } catch (error) {
      return error instanceof Error ? error : new Error(`the result cannot be read: ${describe(error)}`);
    }
  });

function isArrayLike(value: unknown): value is ArrayLike<unknown> {
  return typeof value === "object" && value !== null && Number.isInteger((value as { length?: unknown }).length);
}
