import { BaseRunHandle } from "./contract/base-run-handle.ts";
import type { BatchFunction, Executor, RunHandle } from "./contract/executor.ts";

/** The methods of a decorator, which calls those of the executor it wraps itself. */
export interface ExecutorWrap<In, Out> {
  run(items: In[], handle: RunHandle): Promise<ArrayLike<Out | Error>>;
  /** @default the inner executor's */
  found?(item: In, error: unknown): void;
  /** @default the inner executor's */
  ready?(): ReturnType<Executor<In, Out>["ready"]>;
  /** @default the inner executor's */
  close?(): Promise<void>;
}

/** An executor around another, with the same slots, start and close, and a `run` of its own. */
export function wrapExecutor<In, Out>(
  inner: Executor<never, unknown>,
  {
    run,
    found = (item, error) => inner.found?.(item as never, error),
    ready = () => inner.ready(),
    close = () => inner.close(),
  }: ExecutorWrap<In, Out>,
): Executor<In, Out> {
  const { slots, prefetch, reportsStart, runsApart } = inner;
  // Required: a property that executors get in future must not be lost here.
  const coreShortage = (): number => inner.coreShortage?.() ?? 0;
  return { slots, prefetch, reportsStart, runsApart, coreShortage, found, ready, run, close } satisfies Required<
    Executor<In, Out>
  >;
}

/**
 * A batch function as an executor with `slots` slots (integer >= 1, default 1): ready at once, with nothing to close.
 */
export function executorOf<In, Out>(run: BatchFunction<In, Out>, slots: number = 1): Executor<In, Out> {
  return {
    slots,
    ready: () => Promise.resolve(),
    // Called as a function, so that `this` is undefined in it, and not this object. A caller that awaits the result
    // accepts a value or an error at once as well as a promise.
    run: (items, handle) => run(items, handle) as Promise<ArrayLike<Out | Error>>,
    close: () => Promise.resolve(),
  };
}

/** Options of `runHandle`. */
export interface RunHandleOptions {
  /** Items in the batch; integer >= 1. */
  readonly size: number;
  /**
   * Id of the batch.
   * @default 1
   */
  readonly batchId?: number | undefined;
  /**
   * Aborting it aborts the run.
   * @default none: the run's signal never aborts
   */
  readonly signal?: AbortSignal | undefined;
}

/** The handle of a run without a batcher. */
export interface ManualRunHandle extends RunHandle {
  /** The run time that the executor reported, in milliseconds; undefined if it reported none. */
  readonly runMs: number | undefined;
}

/**
 * A handle to run an executor by hand, without a batcher: reports about dispatch then have no effect.
 * @example
 * const results = await executor.run(items, runHandle({ size: items.length }));
 */
export function runHandle({ size, batchId = 1, signal }: RunHandleOptions): ManualRunHandle {
  return new BaseRunHandle(batchId, size, signal);
}
