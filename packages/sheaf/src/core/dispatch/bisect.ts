import { propertyOf } from "../../shared/describe.ts";
import type { CostModel } from "../../policies/cost-model.ts";
import type { BatchRecord } from "../../policies/policy.ts";
import type { BaseRunHandle } from "../contract/base-run-handle.ts";
import { BatcherError } from "../contract/errors.ts";
import type { Executor } from "../contract/executor.ts";
import type { Settings } from "../contract/settings.ts";
import { type Entry, weightsOf } from "../queue/entry.ts";
import type { Queue } from "../queue/queue.ts";
import type { Settlement } from "../queue/settlement.ts";
import { warnOnce } from "../runtime/warnings.ts";
import { type BatchRun, Run, type RunFacts, type RunReports } from "./run.ts";
import type { RunTimeouts } from "./run-timeouts.ts";
import { SearchTurns, type Slots } from "./search-turns.ts";
import { TimedRun } from "./timed-run.ts";

/** A part of a failed batch. */
interface Part {
  /** Of its items in the batch. */
  readonly indices: readonly number[];
  /** Shared by the parts of a failed run. `open` counts those that have not passed: the last one must hold the fault. */
  readonly division?: { open: number } | undefined;
  /** It may take as long as any run. */
  readonly hasFullTime?: boolean | undefined;
}

/** A part of a batch whose run never ended may take this many times what its size usually does, and at least `leastLimitMs`. */
const patience = 10;
const leastLimitMs = 100;

/**
 * Finds out whether a failed batch failed by itself or for some of its items: halves are run left then right, and a half that
 * fails is halved again, until each bad item is alone. k bad items among n cost at most about 2k·log2(n/k) + 2k runs (group
 * testing by binary splitting), so the default bound finds at least 4 exactly. Where nothing passes and two items fail alike,
 * each alone, the failure is the run's. Items left then, or when the runs are spent, get the batch's error.
 *
 * After a run that ended its worker or never ended, parts run apart, where the executor can. Each part that fails then costs a worker
 * start, and the other parts wait for it. So the batch is split into √n parts; the items of failed parts run one by one after all parts
 * have run, and an item that is known to be bad runs last.
 */
class Search<In, Out> {
  readonly #run: Run<In>;
  readonly #how: Bisector<In, Out>;
  readonly #parts: Part[] = [];
  /** Items that failed alone, and their errors. */
  readonly #found: { readonly index: number; readonly error: unknown }[] = [];
  /** Runs that were given up. */
  readonly #hung: TimedRun[] = [];
  #error: unknown;
  #runsLeft: number;
  #lossesLeft: number;
  #hasPassed = false;
  /** A run ended its worker or never ended. */
  #isLost = false;
  #isHung = false;

  constructor(run: Run<In>, error: unknown, how: Bisector<In, Out>) {
    const { size, batch } = run;
    this.#run = run;
    this.#error = error;
    this.#how = how;
    const levels = Math.ceil(Math.log2(Math.max(size, 2)));
    this.#runsLeft = how.runs.settings.maxBisectRuns ?? 8 * levels;
    this.#lossesLeft = 2 * levels + 2;
    const all: Part = { indices: [...batch.entries.keys()], hasFullTime: true };
    if (isLoss(error) !== undefined) this.#lost(error);
    // Most crashes come from outside, so the whole runs again, and so does a lone item that took too long where that is in nobody's way.
    if (this.#isLost && (size === 1 ? how.runsApart : !this.#isHung)) this.#parts.push(all);
    else this.#split(all, error);
  }

  async find(hung: TimedRun | undefined): Promise<void> {
    if (hung !== undefined) this.#hung.push(hung);
    for (let part = this.#parts.pop(); part !== undefined; part = this.#parts.pop()) {
      const alive = this.#alive(part.indices);
      if (alive.length === 0) continue;
      if (this.#runsLeft <= 0 || this.#lossesLeft <= 0) {
        this.#how.runs.restFailed(this.#run, this.#error);
        break;
      }
      if (this.#isLost && part.division?.open === 1 && alive.length > 1) this.#divide(alive);
      else if (this.#isApart && part.division?.open === 1) this.#tryLast(part);
      else if (!(await this.#try(part, alive))) break;
    }
    this.#tell();
  }

  /** Callers that have left are not worth a run, unless what they left would hang another one. */
  #alive(indices: readonly number[]): readonly number[] {
    return this.#run.outlivesCallers
      ? indices
      : indices.filter((index) => !this.#how.runs.queue.cancellation.leftBehind(this.#run.batch.entries[index]!));
  }

  /** Returns false where the search is over. */
  async #try(part: Part, waiting: readonly number[]): Promise<boolean> {
    const run = this.#run;
    if (!this.#isApart) await this.#how.turns.take(run);
    // Read the clock before checking who is left: a caller's clock may abort calls.
    const nowMs = this.#how.runs.settings.clock.now();
    const alive = this.#alive(waiting);
    if (alive.length === 0) {
      this.#how.endTurn(run, this.#isLost);
      return true;
    }
    this.#runsLeft--;
    const limitMs = this.#isHung && !part.hasFullTime ? this.#how.limitMs(alive.length) : undefined;
    const outcome = await this.#how.runAgain(run, alive, nowMs, this.#isLost, limitMs);
    if ("results" in outcome) {
      this.#hasPassed = true;
      if (part.division !== undefined) part.division.open--;
      alive.forEach((index, position) => {
        const result = outcome.results[position];
        run.itemEnded(result);
        this.#how.runs.calls.settle(run.batch, run.batch.entries[index]!, result);
      });
      return true;
    }
    const { error, givenUp } = outcome;
    if (givenUp !== undefined) this.#hung.push(givenUp);
    this.#how.runs.throttle.failed(error);
    if (run.isPutBack) {
      this.#how.runs.putBack(run, error);
      return false;
    }
    if (isLoss(error)) this.#lost(error);
    if (!this.#how.mayBisect(error)) {
      for (const index of alive) this.#how.failed(run, index, error);
      return true;
    }
    // What is usual may be too short for it.
    if (limitMs !== undefined && isLoss(error) === "hung" && this.#isApart && alive.length === 1) this.#tryLast(part);
    else this.#split({ ...part, indices: alive }, error);
    if (!this.#isOfRun) return true;
    this.#how.runs.restFailed(run, this.#error);
    return false;
  }

  #lost(error: unknown): void {
    this.#lossesLeft--;
    this.#isLost = true;
    if (isLoss(error) !== "hung") return;
    this.#isHung = true;
    // Each of its parts is given up in time.
    this.#run.outlivesCallers = this.#how.runsApart;
  }

  /** Parts run apart from the other batches. */
  get #isApart(): boolean {
    return this.#isLost && this.#how.runsApart;
  }

  #split({ indices }: Part, error: unknown): void {
    const culprit = propertyOf(error, "itemIndex");
    if (typeof culprit === "number" && Number.isInteger(culprit) && culprit >= 0 && culprit < indices.length) {
      this.#fails(indices[culprit]!, error);
      this.#parts.push({ indices: indices.filter((_, position) => position !== culprit) });
    } else if (indices.length === 1) {
      this.#fails(indices[0]!, error);
    } else {
      this.#divide(indices);
    }
  }

  #divide(indices: readonly number[]): void {
    const { length } = indices;
    const side = Math.ceil(Math.sqrt(this.#run.size));
    const size = this.#isApart ? (length > side ? side : 1) : Math.ceil(length / 2);
    const division = { open: Math.ceil(length / size) };
    const parts: Part[] = Array.from({ length: division.open }, (_, part) => ({
      indices: indices.slice(part * size, (part + 1) * size),
      division,
    })).reverse();
    if (this.#isApart) this.#parts.unshift(...parts);
    else this.#parts.push(...parts);
  }

  #tryLast({ indices }: Part): void {
    this.#parts.unshift({ indices, hasFullTime: true });
  }

  #fails(index: number, cause: unknown): void {
    const error = this.#how.alone(cause);
    this.#found.push({ index, error });
    this.#how.failed(this.#run, index, error);
  }

  /** Nothing passes, and items fail alike, each alone. */
  get #isOfRun(): boolean {
    const [first, second] = this.#found;
    return !this.#hasPassed && second !== undefined && isAlike(first!.error, second.error);
  }

  /** Reports the bad items. If nothing passed, only a batch of one that was lost with its worker is reported. */
  #tell(): void {
    if (!this.#hasPassed && !(this.#isLost && this.#run.size === 1)) return;
    if (this.#found.length === 0) return;
    if (this.#hasPassed || this.#isApart) this.#how.runs.timeouts?.blamed(this.#hung);
    for (const { index, error } of this.#found)
      this.#how.runs.executor?.found?.(this.#run.batch.entries[index]!.item, error);
  }
}

/** How a failed run has lost its worker; undefined where it has not. */
export function isLoss(error: unknown): "crashed" | "hung" | undefined {
  if (!(error instanceof BatcherError)) return undefined;
  if (error.code === "RUN_TIMEOUT") return "hung";
  return error.code === "WORKER_CRASHED" && error.details["isOfItem"] !== false ? "crashed" : undefined;
}

function isAlike(a: unknown, b: unknown): boolean {
  if (isLoss(a) !== undefined) return isLoss(a) === isLoss(b);
  return propertyOf(a, "name") === propertyOf(b, "name") && propertyOf(a, "message") === propertyOf(b, "message");
}

/** A run of some items of a failed batch. It is given up alone, where it takes too long. */
class PartRun<In> extends TimedRun {
  readonly #run: Run<In>;

  constructor(run: Run<In>, indices: readonly number[], isApart: boolean) {
    super(run.batchId, indices.length);
    this.#run = run;
    this.isPartOf(run, indices);
    this.isApart = isApart;
    this.aborted = run.aborted;
    run.onAborted((reason) => this.abort(reason));
  }

  /** Once given up, it must not put back the parts that run after it. */
  override putBack(): void {
    if (!this.abandoned) super.putBack();
  }

  override givenUp(reason: unknown): void {
    super.givenUp(reason);
    this.#run.partLeft(1);
    this.abort(reason);
  }

  override endedLate(): void {
    this.#run.partLeft(-1);
  }
}

type Outcome =
  { readonly results: ArrayLike<unknown> } | { readonly error: unknown; readonly givenUp: TimedRun | undefined };

/** What a search needs of the dispatcher. */
export interface Runs<In, Out> extends Slots<In>, RunReports<In> {
  readonly run: BatchRun<In>;
  readonly executor: Pick<Executor<In, Out>, "found" | "runsApart"> | undefined;
  readonly settings: Settings<In, Out>;
  readonly calls: Settlement<In>;
  readonly queue: Pick<Queue<In>, "size" | "cancellation">;
  readonly timeouts: RunTimeouts | undefined;
  attempt(
    run: Run<In>,
    handle: TimedRun,
    entries: readonly Entry<In>[],
    batchRun: BatchRun<In>,
    limitMs: number | undefined,
  ): Promise<unknown>;
  inOrder(results: unknown, entries: readonly Entry<In>[], handle: BaseRunHandle): ArrayLike<unknown>;
  together(nowMs: number): number;
  meanInFlight(startedAtMs: number, msBefore: number, nowMs: number): number;
  ranAgain(items: number, weight: number, bulkRate: number, nowMs: number): void;
  /** A part of a batch passed. */
  learn(part: RunFacts, nowMs: number): void;
  restFailed(run: Run<In>, error: unknown): void;
  putBack(run: Run<In>, error: unknown): void;
  record(run: Run<In>, nowMs: number, outcome: BatchRecord["outcome"], hasFailed: boolean, error: unknown): void;
  end(run: Run<In>, nowMs: number): void;
}

/** Takes the failed batches of a dispatcher apart. */
export class Bisector<In, Out> {
  readonly runs: Runs<In, Out>;
  readonly turns: SearchTurns<In>;
  readonly #cost: Pick<CostModel, "at">;
  readonly #warn = warnOnce();

  constructor(runs: Runs<In, Out>, cost: Pick<CostModel, "at">) {
    this.runs = runs;
    this.turns = new SearchTurns(runs.settings, runs, runs.queue);
    this.#cost = cost;
  }

  /** Whether the executor runs parts apart from other batches, in no slot. */
  get runsApart(): boolean {
    return this.runs.executor?.runsApart === true;
  }

  /** A shouldBisect that throws decides nothing: the callers get the batch's error, and a warning shows its own. */
  mayBisect(error: unknown): boolean {
    const { shouldBisect, name } = this.runs.settings;
    return mayBeOfItems(error, shouldBisect, (bug) =>
      this.#warn(`${name}: shouldBisect threw; the batch was not bisected.`, bug),
    );
  }

  /** Searches a failed batch where that may help its callers; for nobody, only if what would hang another run can be found apart. */
  search(failed: Run<In>, error: unknown): Promise<void> | undefined {
    if (!this.mayBisect(error)) return undefined;
    const isWorthIt = failed.batch.live > 0 || (failed.abandoned && this.runsApart);
    return isWorthIt ? this.#search(failed, error) : undefined;
  }

  async #search(failed: Run<In>, error: unknown): Promise<void> {
    const { clock } = this.runs.settings;
    let nowMs = clock.now();
    const hung = failed.abandoned ? failed : undefined;
    const run = hung === undefined ? failed : this.#heirOf(hung, nowMs);
    this.turns.admit(run, nowMs);
    run.runMs = undefined; // the one of the whole batch, which failed
    if (hung === undefined) run.end();
    await new Search(run, error, this).find(hung);
    nowMs = clock.now();
    run.runMs = nowMs - run.startedAtMs - run.searchWaitMs;
    const isRefused = run.isPutBack;
    const outcome = isRefused ? "refused" : run.passedItems > 0 ? "partial" : "error";
    // Items are to blame where the search told them from others.
    const isOfItems = run.passedItems > 0 && run.failedItems > 0;
    this.runs.record(run, nowMs, outcome, !isRefused && !isOfItems, error);
    this.turns.leave(run);
    this.runs.end(run, nowMs);
  }

  /** Runs the items of a run that was given up again. */
  #heirOf(hung: Run<In>, nowMs: number): Run<In> {
    const { batch } = hung;
    const heir = new Run<In>(hung.dispatched, batch, this.runs);
    heir.msBefore = hung.msBefore;
    heir.attempt = hung.attempt;
    heir.passedItems = hung.passedItems;
    heir.failedItems = hung.failedItems;
    batch.run = heir;
    hung.heir = heir;
    heir.elder = hung;
    this.runs.leave(hung, nowMs);
    this.runs.hold(heir, nowMs);
    return heir;
  }

  /** The error of an item that failed alone. */
  alone(error: unknown): unknown {
    if (isLoss(error) !== "crashed") return error;
    const { message } = error as BatcherError;
    const what = `${this.runs.settings.name}: a worker ended each time that this item ran, the last time alone`;
    return new BatcherError("WORKER_CRASHED", `${what}: ${message}`, { items: 1 }, error);
  }

  failed(run: Run<In>, index: number, error: unknown): void {
    run.failedItems++;
    this.runs.calls.settle(run.batch, run.batch.entries[index]!, error, undefined, "error");
  }

  endTurn(run: Run<In>, isApart: boolean): void {
    if (!(isApart && this.runsApart)) this.turns.end(run, this.runs.settings.clock.now());
  }

  /** Runs some of the items again, by their indices, in the turn that the batch has taken, and ends it. */
  async runAgain(
    run: Run<In>,
    indices: readonly number[],
    nowMs: number,
    isApart: boolean,
    limitMs: number | undefined,
  ): Promise<Outcome> {
    const { batch, size } = run;
    const { length } = indices;
    const { runOne } = this.runs.settings;
    run.counted = (run.dispatched.weight * length) / size;
    run.extraRuns++;
    run.beganAtMs = nowMs;
    const msBefore = this.runs.together(nowMs);
    this.runs.ranAgain(length, run.counted, run.bulkRate, nowMs);
    if (isApart) run.attempt++;
    const isOne = length === 1 && runOne !== undefined;
    const batchRun: BatchRun<In> = isOne ? async ([item], handle) => [await runOne(item!, handle)] : this.runs.run;
    const entries = indices.map((index) => batch.entries[index]!);
    const handle = new PartRun<In>(run, indices, isApart && this.runsApart);
    try {
      const results = this.runs.inOrder(
        await this.runs.attempt(run, handle, entries, batchRun, limitMs),
        entries,
        handle,
      );
      if (!isOne && !handle.isApart) this.#partPassed(run, handle, entries, nowMs, msBefore);
      return { results };
    } catch (error) {
      return { error, givenUp: handle.abandoned ? handle : undefined };
    } finally {
      handle.end();
      this.endTurn(run, isApart);
    }
  }

  /** How long a part of a batch may take whose run never ended. */
  limitMs(items: number): number | undefined {
    const expectedMs = this.#cost.at(items);
    return expectedMs === 0 ? undefined : Math.max(leastLimitMs, patience * expectedMs);
  }

  /** A part of a batch costs what a batch of its size does. */
  #partPassed(
    run: Run<In>,
    handle: BaseRunHandle,
    entries: readonly Entry<In>[],
    startedAtMs: number,
    msBefore: number,
  ) {
    const nowMs = this.runs.settings.clock.now();
    const part: RunFacts = {
      size: entries.length,
      weights: run.batch.weights && weightsOf(entries),
      startedAtMs,
      inFlight: this.runs.meanInFlight(startedAtMs, msBefore, nowMs),
      runMs: handle.runMs ?? nowMs - run.beganAtMs,
      outcome: "ok",
    };
    this.runs.learn(part, nowMs);
  }
}

/** Whether single items may be to blame for the failure of their run: as `shouldBisect` says, where it does not throw. */
export function mayBeOfItems(
  error: unknown,
  shouldBisect: (error: unknown) => boolean = shouldBisectByDefault,
  warn: (bug: unknown) => void = () => undefined,
): boolean {
  try {
    return shouldBisect(error);
  } catch (bug) {
    warn(bug);
    return false;
  }
}

const statusesOfTheService = new Set([401, 403, 408, 429]);

/** False for errors of the service rather than of an item: running parts again would only load it more. */
function shouldBisectByDefault(error: unknown): boolean {
  // A service that says when to come back means all of it.
  if (typeof propertyOf(error, "retryAfterMs") === "number") return false;
  if (error instanceof BatcherError) return error.code !== "RESULT_COUNT" && error.details["isOfItem"] !== false;
  if (typeof error !== "object" || error === null) return true;
  const { name, code, status, statusCode, cause } = error as Record<string, unknown>;
  if (name === "AbortError" || name === "TimeoutError") return false;
  const httpStatus = typeof status === "number" ? status : statusCode;
  if (typeof httpStatus === "number") return !statusesOfTheService.has(httpStatus) && httpStatus < 500;
  if (typeof code === "string" && isSocketError(code)) return false;
  // fetch wraps the socket's error: TypeError("fetch failed", { cause: ECONNREFUSED }).
  return !isSocketError(String(propertyOf(cause, "code")));
}

/** Codes of Node's sockets and of undici. */
export const isSocketError = (code: string): boolean =>
  /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_|EHOST|ENET|EADDR|UND_ERR|ESOCKET|ERR_SOCKET|ERR_STREAM)/.test(code);
