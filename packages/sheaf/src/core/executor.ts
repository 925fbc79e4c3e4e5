/** What a batch function or executor is told about the batch it runs. */
export interface BatchContext {
  /** Aborts only when every caller of the batch has gone, on `runTimeoutMs`, or when a grace period of `close` ends. */
  readonly signal: AbortSignal;
  /** 1, 2, 3 … per batcher; sub-runs of a bisection carry the id of their batch. */
  readonly batchId: number;
  readonly size: number;
  /** 1; an executor that runs the batch again, after a crash of its worker, counts up. */
  attempt: number;
  /** An executor that measured the run itself (start of run → results, without its own queueing) puts it here. */
  runMs?: number | undefined;
  /**
   * An executor that settles a run it gave up before the run has ended (a thread can not be stopped) puts a promise of
   * that end here: until then the batch's orderKeys stay blocked.
   */
  stillRuns?: Promise<unknown> | undefined;
  /** For an executor that `reportsStart`: tells that the run begins now, again for each attempt. */
  started?: (() => void) | undefined;
  /** For the same executor: tells that the run was cut short, by a crash of its worker, and waits to begin again. */
  stopped?: (() => void) | undefined;
  /**
   * Set by an executor: told that the run is past `runTimeoutMs` where the signal can not say so, because it has aborted
   * before, when every caller had gone.
   */
  givenUp?: ((error: Error) => void) | undefined;
  /**
   * Dispatch waits that many milliseconds, as after an error with `retryAfterMs`: for a run that will try again by itself
   * and knows that the service wants nothing else meanwhile. Absent where nothing is dispatched (calibration, tests).
   */
  pause?(durationMs: number): void;
  /** Counts one more run of this batch on `rateLimit`: for a run that asks its service again by itself. Absent as `pause` is. */
  countRun?(): void;
}

/**
 * Results by key: a `Map`. Its `get` says that a key may be missing, which is how `Out` gains `undefined`. An `Error`
 * rejects the callers of its key.
 */
export interface KeyedResults<Out> {
  readonly size: number;
  get(key: never): Out | Error;
  has(key: never): boolean;
}

/** What a batch function returns: results in the order of the items, or a `Map` of them by key. */
export type BatchResults<Out> = ArrayLike<Out | Error> | KeyedResults<Out>;

/** Runs one batch: an array of results is positional, a `Map` goes by key; an `Error` rejects that caller only. */
export type BatchFunction<In, Out> = (
  items: In[],
  context: BatchContext,
) => BatchResults<Out> | PromiseLike<BatchResults<Out>>;

/** How long a run of so many items took. */
export interface RunTime {
  readonly size: number;
  readonly runMs: number;
}

/** Where batches run: worker threads, processes, a remote queue. */
export interface Executor<In, Out> {
  /** Batches it runs at once; the default `concurrency`. Integer >= 1. */
  readonly slots: number;
  /** 0 or 1: *full* batches that may be handed to a busy instance early, to hide its wake-up. Default 0. */
  readonly ahead?: number | undefined;
  /**
   * Batches may wait in it, for an instance that is started again or for the one before: it calls `context.started` when
   * a run begins, `context.stopped` when it waits again, and `runTimeoutMs` counts in between. Default false: from dispatch.
   */
  readonly reportsStart?: boolean | undefined;
  /**
   * Resolves when it can run batches (models loaded and warm); rejects with the reason it never will. With the runs of its
   * warm-up, without the first of each size on each instance, the batcher can say what batches cost before the first.
   */
  ready(): Promise<readonly RunTime[] | void>;
  run(items: In[], context: BatchContext): Promise<ArrayLike<Out | Error>>;
  /** Finishes what runs, then lets go of every resource. Called once. */
  close(): Promise<void>;
}
