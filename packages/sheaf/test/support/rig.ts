import assert from "node:assert/strict";
import {
  type BatchContext,
  type Batcher,
  BatcherError,
  type BatcherOptions,
  type CallOptions,
  createBatcher,
  type ErrorCode,
  greedy,
} from "../../dist/index.js";
import { type ManualClock, manualClock } from "../../dist/testing/index.js";

/** A batch that runs until the test ends it. */
export interface HeldRun<In, Out> {
  readonly items: In[];
  readonly context: BatchContext;
  readonly startedAtMs: number;
  /** Ends it with these results, its own items unless told otherwise. */
  finish(...results: [] | [ArrayLike<Out | Error>]): Promise<void>;
  fail(error: unknown): Promise<void>;
}

export interface Rig<In, Out> {
  readonly batcher: Batcher<In, Out>;
  readonly clock: ManualClock;
  readonly runs: HeldRun<In, Out>[];
  /** The items of every batch so far. */
  batches(): In[][];
  /** Finishes every run, also those that start meanwhile. */
  finishAll(): Promise<void>;
}

/** A batcher on a manual clock, `greedy()` and one slot unless told otherwise, whose runs the test ends by hand. */
export function heldBatcher<In = number>(options: BatcherOptions<In, In> = {}): Rig<In, In> {
  const clock = manualClock();
  const runs: HeldRun<In, In>[] = [];
  const ended = new Set<HeldRun<In, In>>();
  const batcher = createBatcher<In, In>(
    (items, context) =>
      new Promise<ArrayLike<In | Error>>((resolve, reject) => {
        const run: HeldRun<In, In> = {
          items: [...items],
          context,
          startedAtMs: clock.now(),
          finish: (...results) => {
            ended.add(run);
            resolve(results.length === 0 ? run.items : results[0]!);
            return clock.settle();
          },
          fail: (error) => {
            ended.add(run);
            reject(error as Error);
            return clock.settle();
          },
        };
        runs.push(run);
      }),
    { clock, policy: greedy(), concurrency: 1, ...options },
  ) as Batcher<In, In>;
  const finishAll = async (): Promise<void> => {
    await clock.settle();
    for (let next = open(); next !== undefined; next = open()) await next.finish();
  };
  const open = (): HeldRun<In, In> | undefined => runs.find((run) => !ended.has(run));
  return { batcher, clock, runs, batches: () => runs.map((run) => run.items), finishAll };
}

export interface TimedOptions<In> extends BatcherOptions<In, In> {
  /** Cost of a run on the clock: `fixedMs + perItemMs × items`. Default 10 and 0. */
  readonly fixedMs?: number;
  readonly perItemMs?: number;
  /** An item for which this gives an error fails the whole run. */
  readonly failure?: (item: In) => Error | undefined;
}

/** A batcher on a manual clock whose runs take their time by themselves and echo their items. */
export function timedBatcher<In = number>(
  timedOptions: TimedOptions<In> = {},
): Omit<Rig<In, In>, "runs"> & {
  readonly runs: { readonly items: In[]; readonly startedAtMs: number; readonly context: BatchContext }[];
} {
  const { fixedMs = 10, perItemMs = 0, failure, ...options } = timedOptions;
  const clock = manualClock();
  const runs: { items: In[]; startedAtMs: number; context: BatchContext }[] = [];
  const batcher = createBatcher<In, In>(
    (items, context) => {
      runs.push({ items: [...items], startedAtMs: clock.now(), context });
      return new Promise<In[]>((resolve, reject) => {
        clock.after(fixedMs + perItemMs * items.length, () => {
          const error = failure && items.map(failure).find((found) => found !== undefined);
          if (error === undefined) resolve(items);
          else reject(error);
        });
      });
    },
    { clock, policy: greedy(), concurrency: 1, ...options },
  ) as Batcher<In, In>;
  const finishAll = (): Promise<void> => clock.advanceAsync(1e6);
  return { batcher, clock, runs, batches: () => runs.map((run) => run.items), finishAll };
}

/** What became of a promise so far; watching it also keeps a rejection from being unhandled. */
export interface Watched<T> {
  status: "pending" | "fulfilled" | "rejected";
  value?: T;
  reason?: unknown;
}

export function watch<T>(promise: PromiseLike<T>): Watched<T> {
  const watched: Watched<T> = { status: "pending" };
  promise.then(
    (value) => Object.assign(watched, { status: "fulfilled", value }),
    (reason: unknown) => Object.assign(watched, { status: "rejected", reason }),
  );
  return watched;
}

/** Calls with every item and watches each. */
export const watchAll = <In, Out>(
  batcher: Batcher<In, Out>,
  items: Iterable<In>,
  options?: CallOptions,
): Watched<Out>[] => Array.from(items, (item) => watch(batcher(item, options)));

export const statuses = (watched: readonly Watched<unknown>[]): string[] => watched.map(({ status }) => status);
export const values = <T>(watched: readonly Watched<T>[]): (T | undefined)[] => watched.map(({ value }) => value);

/** What settled calls came to: the value of each, or its error. */
export const endsOf = (outcomes: readonly PromiseSettledResult<any>[]): any[] =>
  outcomes.map((outcome) => (outcome.status === "fulfilled" ? outcome.value : outcome.reason));
/** The same with an error's code in its place. */
export const codesOf = (outcomes: readonly PromiseSettledResult<any>[]): any[] =>
  endsOf(outcomes).map((end) => (end instanceof Error ? (end as { code?: string }).code : end));

/** The call was rejected with a BatcherError of this code; gives the error. */
export function assertCode(watched: Watched<unknown> | undefined, code: ErrorCode): BatcherError {
  assert.equal(watched?.status, "rejected", `expected ${code}, the call is ${watched?.status}`);
  const reason = watched.reason;
  assert.ok(reason instanceof BatcherError, `expected ${code}, got ${String(reason)}`);
  assert.equal(reason.code, code);
  return reason;
}

/** A policy that never lets anything go by itself: only what ends a hold does. */
export const holdForEver = (): { name: string; decide: () => "wait" } => ({ name: "hold", decide: () => "wait" });
export const numbers = (count: number, from = 0): number[] => Array.from({ length: count }, (_, index) => from + index);
