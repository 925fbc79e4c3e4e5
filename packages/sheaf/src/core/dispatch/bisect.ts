import type { Chunk } from "../queue/chunk.ts";
import { propertyOf } from "../../shared/describe.ts";
import type { BaseRunHandle } from "../contract/base-run-handle.ts";
import { BatcherError } from "../contract/errors.ts";
import type { Settings } from "../contract/settings.ts";
import type { Settlement } from "../queue/settlement.ts";
import { warnOnce } from "../runtime/runtime.ts";
import type { BatchRun, Dispatcher } from "./dispatcher.ts";
import { sumOf, type Run, type RunFacts } from "./run.ts";

/** How a failed batch is taken apart; see `bisect`. */
interface Bisection {
  readonly shouldBisect: (error: unknown) => boolean;
  /** Extra runs at most; default 8·⌈log2 n⌉ for a batch of n. */
  readonly maxBisectRuns: number | undefined;
  now(): number;
  /** Runs some of the items again, by their indices, and returns a result for each, or throws. */
  runAgain(indices: readonly number[], nowMs: number): Promise<ArrayLike<unknown>>;
  /** A part of the batch passed, and this is what it returned for an item. */
  ended(index: number, result: unknown): void;
  failed(index: number, error: unknown): void;
  /** The items that are left fail. */
  restFailed(error: unknown): void;
  /** The part failed for no fault of its items: the rest of the batch goes back to the queue. */
  isPutBack(error: unknown): boolean;
  /** A run exceeded runTimeoutMs: the batch has lost its slot and none of it runs again. */
  isGivenUp(): boolean;
  /** Whether the callers of an item have left. */
  isLeft(index: number): boolean;
}

/**
 * Isolates the items that a batch failed for: halves are run left then right, and a half that fails is halved again,
 * until each bad item is alone. k bad items among n cost at most about 2k·log2(n/k) + 2k runs (group testing by
 * binary splitting), so the default bound finds at least 4 exactly. Items left when the runs are spent get the
 * batch's error.
 */
async function bisect<In>(batch: Chunk<In>, error: unknown, how: Bisection): Promise<void> {
  let runsLeft = how.maxBisectRuns ?? 8 * Math.ceil(Math.log2(batch.count));
  const parts: number[][] = [];
  const split = (part: number[], partError: unknown): void => {
    const culprit = propertyOf(partError, "itemIndex");
    if (typeof culprit === "number" && Number.isInteger(culprit) && culprit >= 0 && culprit < part.length) {
      how.failed(part[culprit]!, partError);
      parts.push(part.filter((_, position) => position !== culprit));
    } else if (part.length === 1) {
      how.failed(part[0]!, partError);
    } else {
      const middle = Math.ceil(part.length / 2);
      parts.push(part.slice(middle), part.slice(0, middle));
    }
  };

  split([...batch.items.keys()], error);
  for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
    // Before the look at who is left: a clock may call the batcher.
    const nowMs = how.now();
    // Callers that have left meanwhile are not worth a run.
    const alive = part.filter((index) => !how.isLeft(index));
    if (alive.length === 0) continue;
    if (runsLeft-- <= 0) return how.restFailed(error);
    try {
      const results = await how.runAgain(alive, nowMs);
      alive.forEach((index, position) => how.ended(index, results[position]));
    } catch (partError) {
      if (how.isGivenUp()) return how.restFailed(partError);
      if (how.isPutBack(partError)) return;
      if (how.shouldBisect(partError)) split(alive, partError);
      else for (const index of alive) how.failed(index, partError);
    }
  }
}

/** Takes the failed batches of a dispatcher apart. */
export class Bisector<In, Out> {
  readonly #run: BatchRun<In>;
  readonly #settings: Settings<In, Out>;
  readonly #calls: Settlement<In>;
  readonly #dispatcher: Dispatcher<In, Out>;
  readonly #warn = warnOnce();

  constructor(run: BatchRun<In>, settings: Settings<In, Out>, calls: Settlement<In>, dispatcher: Dispatcher<In, Out>) {
    this.#run = run;
    this.#settings = settings;
    this.#calls = calls;
    this.#dispatcher = dispatcher;
  }

  /** A shouldBisect that throws decides nothing: the callers get the batch's error, and a warning shows its own. */
  mayBisect(error: unknown): boolean {
    const { shouldBisect, name } = this.#settings;
    return mayBeOfItems(error, shouldBisect, (bug) =>
      this.#warn(`${name}: shouldBisect threw; the batch was not bisected.`, bug),
    );
  }

  bisect(run: Run<In>, error: unknown): Promise<void> {
    const { maxBisectRuns, runOne } = this.#settings;
    const { calls: batch } = run;
    run.runMs = undefined; // the one of the whole batch, which failed
    run.end();
    const one: BatchRun<In> | undefined = runOne && (async ([item], handle) => [await runOne(item!, handle)]);
    return bisect(batch, error, {
      ended: (index, result) => {
        run.itemEnded(result);
        this.#calls.settle(batch, index, result);
      },
      failed: (index, itemError) => {
        run.failedItems++;
        this.#calls.settle(batch, index, itemError, undefined, "error");
      },
      restFailed: (restError) => this.#dispatcher.restFailed(run, restError),
      shouldBisect: (partError) => {
        this.#dispatcher.failed(partError);
        return this.mayBisect(partError);
      },
      maxBisectRuns,
      isGivenUp: () => run.abandoned,
      isLeft: (index) => this.#calls.leftBehind(batch, index),
      isPutBack: (partError) => {
        if (!run.isPutBack) return false;
        this.#dispatcher.failed(partError);
        this.#dispatcher.putBack(run, partError);
        return true;
      },
      now: () => this.#settings.clock.now(),
      runAgain: async (indices, nowMs) => {
        const { length } = indices;
        run.counted = (run.weight * length) / run.size;
        run.extraRuns++;
        run.beganAtMs = nowMs;
        const msBefore = this.#dispatcher.together(nowMs);
        this.#dispatcher.ranAgain(length, run.counted, batch.bulkRate, nowMs);
        const batchRun = length === 1 && one !== undefined ? one : this.#run;
        const items = indices.map((index) => batch.items[index]!);
        const handle = run.part(indices);
        try {
          const results = this.#dispatcher.inOrder(
            await this.#dispatcher.attempt(run, handle, items, batchRun),
            items,
            handle,
          );
          if (batchRun === this.#run) this.#partPassed(run, handle, indices, nowMs, msBefore);
          return results;
        } finally {
          handle.end();
        }
      },
    });
  }

  /** A part of a batch costs what a batch of its size does. */
  #partPassed(run: Run<In>, handle: BaseRunHandle, indices: readonly number[], startedAtMs: number, msBefore: number) {
    const nowMs = this.#settings.clock.now();
    const weights = run.calls.weights && indices.map((index) => run.calls.weights![index]!);
    const part: RunFacts = {
      size: indices.length,
      weights: weights && {
        sum: sumOf(weights),
        heaviest: weights.reduce((most, weight) => Math.max(most, weight), 0),
      },
      startedAtMs,
      inFlight: this.#dispatcher.meanInFlight(startedAtMs, msBefore, nowMs),
      runMs: handle.runMs ?? nowMs - run.beganAtMs,
      outcome: "ok",
    };
    for (const learner of this.#dispatcher.learners) learner.learn(part, nowMs, false);
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
  if (error instanceof BatcherError) {
    return error.code !== "RESULT_COUNT" && error.code !== "RUN_TIMEOUT" && error.code !== "WORKER_CRASHED";
  }
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
