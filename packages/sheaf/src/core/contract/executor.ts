import type { BatchContext } from "./batch-context.ts";
import type { RunHandle } from "./run-handle.ts";

/**
 * Results by key: a `Map`. Its `get` says that a key may be missing, which is how `Out` gains `undefined`. An `Error`
 * rejects the callers of its key.
 */
export interface KeyedResults<Out> {
  readonly size: number;
  get(key: never): Out | Error;
  has(key: never): boolean;
}

/** The return value of a batch function: results in the order of the items, or a `Map` of them by key. */
export type BatchResults<Out> = ArrayLike<Out | Error> | KeyedResults<Out>;

/**
 * Runs one batch: an array of results is positional, a `Map` goes by key; an `Error` rejects that caller only. The entry of an
 * item that `context.answer` has answered is ignored. A function that answered all may return nothing, where `Out` is given
 * and need not be inferred.
 */
export type BatchFunction<In, Out> = (
  items: In[],
  context: BatchContext,
) =>
  | BatchResults<Out>
  | (unknown extends Out ? never : void)
  | PromiseLike<BatchResults<Out> | (unknown extends Out ? never : void)>;

/** How long a run of so many items took. */
export interface RunTime {
  readonly size: number;
  readonly runMs: number;
}

/** Where batches run: worker threads, processes, a remote queue. */
export interface Executor<In, Out> {
  /** Batches it runs at once; the default `concurrency`. Integer >= 1; where it changes, the next arrival or batch shows it. */
  readonly slots: number;
  /**
   * 0 or 1: batches that may be handed to a busy instance early, to hide its wake-up, while at least maxBatchSize or
   * `Policy.aheadSize` items wait.
   * @default 0
   */
  readonly prefetch?: number | undefined;
  /**
   * Batches may wait in the executor, for an instance that is started again or for the batch before: it calls
   * `handle.started()` when a run begins and `handle.stopped()` when it waits again, and `runTimeoutMs` counts in
   * between.
   * @default false: it counts from dispatch
   */
  readonly reportsStart?: boolean | undefined;
  /**
   * Resolves when it can run batches (models loaded and warm); rejects with the reason it never will. With the runs of its
   * warm-up, without the first of each size on each instance, the batcher can say what batches cost before the first.
   */
  ready(): Promise<readonly RunTime[] | void>;
  run(items: In[], handle: RunHandle): Promise<ArrayLike<Out | Error>>;
  /** Finishes its runs, then releases every resource. Called once. */
  close(): Promise<void>;
}
