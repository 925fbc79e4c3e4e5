import type { BatchContext } from "../batch-context.ts";
import { BatcherError } from "../errors.ts";
import { checkFunction, checkOptions, integerFrom } from "../../shared/checks.ts";

/** Runs one item. */
export type RunOne<In, Out> = (item: In, context: BatchContext) => Out | Error | PromiseLike<Out | Error>;

/** A batch that failed, and what can be done with it. */
export interface FailedBatch {
  readonly size: number;
  readonly error: unknown;
  /** Whether a caller of the item still waits for its result. */
  isAwaited(index: number): boolean;
  /** Gives the callers of an item its result; an `Error` rejects them. */
  settle(index: number, result: unknown): void;
  fail(index: number, error: unknown): void;
  /** Runs some of the items again, by their indices, a lone one with `runOne`; returns a result for each, or throws. */
  runAgain(indices: readonly number[]): Promise<ArrayLike<unknown>>;
  /** A run exceeded runTimeoutMs: the batch has lost its slot and none of it runs again. */
  isGivenUp(): boolean;
  /** Prints the first message of a batcher and no other. */
  warn(message: string, error: unknown): void;
}

/** What is done with a batch that failed; `bisect` makes one, for any number of batchers. */
export interface Bisect<In, Out> {
  readonly runOne: RunOne<In, Out> | undefined;
  /** For the batcher. Settles all callers of the batch; `undefined` where it leaves them to the batcher, which gives them the error. */
  handle(failed: FailedBatch): Promise<void> | undefined;
}

/** Options of `bisect`. */
export interface BisectOptions<In, Out> {
  /** Runs the lone item that a bisection isolated, instead of the batch function. */
  readonly runOne?: RunOne<In, Out> | undefined;
  /** Whether an error can be the fault of single items. Default: not for errors of the service itself. */
  readonly shouldBisect?: ((error: unknown) => boolean) | undefined;
  /** Most extra runs of one bisection; integer >= 0. Default 8·⌈log2 n⌉. */
  readonly maxRuns?: number | undefined;
}

const checks = { runOne: checkFunction, shouldBisect: checkFunction, maxRuns: integerFrom(0) };

/**
 * For `onBatchError`: isolates the items that a batch failed for. Halves are run left then right, and a half that fails is
 * halved again, until each bad item is alone. k bad items among n cost at most about 2k·log2(n/k) + 2k runs (group testing
 * by binary splitting), so the default bound finds at least 4 exactly. What is left when the runs are spent gets the
 * batch's error.
 * @throws {TypeError | RangeError} a wrong option, with what it got.
 */
export function bisect<In = unknown, Out = never>(options: BisectOptions<In, Out> = {}): Bisect<In, Out> {
  checkOptions(options, checks, "bisect");
  const { runOne, shouldBisect = shouldBisectByDefault, maxRuns } = options;
  // One that throws decides nothing: the callers get the batch's error, and a warning shows its own.
  const mayBisect = (error: unknown, { warn }: FailedBatch): boolean => {
    try {
      return shouldBisect(error);
    } catch (bug) {
      warn("shouldBisect threw; the batch was not bisected.", bug);
      return false;
    }
  };
  return {
    runOne,
    handle: (failed) => (mayBisect(failed.error, failed) ? bisected(failed, maxRuns, mayBisect) : undefined),
  };
}

async function bisected(
  failed: FailedBatch,
  maxRuns: number | undefined,
  mayBisect: (error: unknown, failed: FailedBatch) => boolean,
): Promise<void> {
  const { size, error } = failed;
  let runsLeft = maxRuns ?? 8 * Math.ceil(Math.log2(size));
  const parts: number[][] = [];
  const all = Array.from({ length: size }, (_, index) => index);
  const fail = (indices: readonly number[], reason: unknown): void =>
    indices.forEach((index) => failed.fail(index, reason));
  const split = (part: number[], partError: unknown): void => {
    const culprit = (partError as { itemIndex?: unknown } | null | undefined)?.itemIndex;
    if (typeof culprit === "number" && Number.isInteger(culprit) && culprit >= 0 && culprit < part.length) {
      failed.fail(part[culprit]!, partError);
      parts.push(part.filter((_, position) => position !== culprit));
    } else if (part.length === 1) {
      fail(part, partError);
    } else {
      const middle = Math.ceil(part.length / 2);
      parts.push(part.slice(middle), part.slice(0, middle));
    }
  };

  split(all, error);
  for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
    // Callers that have left meanwhile are not worth a run.
    const alive = part.filter((index) => failed.isAwaited(index));
    if (alive.length === 0) continue;
    if (runsLeft-- <= 0) return fail(all, error);
    try {
      const results = await failed.runAgain(alive);
      alive.forEach((index, position) => failed.settle(index, results[position]));
    } catch (partError) {
      if (failed.isGivenUp()) return fail(all, partError);
      if (mayBisect(partError, failed)) split(alive, partError);
      else fail(alive, partError);
    }
  }
}

const statusesOfTheService = new Set([401, 403, 408, 429]);

/** False for errors of the service rather than of an item: running parts again would only load it more. */
export function shouldBisectByDefault(error: unknown): boolean {
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
  return !(typeof cause === "object" && cause !== null && isSocketError(String((cause as { code?: unknown }).code)));
}

/** Codes of Node's sockets and of undici. */
export const isSocketError = (code: string): boolean =>
  /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_|EHOST|ENET|EADDR|UND_ERR|ESOCKET|ERR_SOCKET|ERR_STREAM)/.test(code);
