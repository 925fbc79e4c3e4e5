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

/** Run time of a batch of `size` items. */
export interface RunTime {
  readonly size: number;
  readonly runMs: number;
}

/** Where batches run: worker threads, processes, a remote queue. */
export interface Executor<In, Out> {
  /** Batches it runs at once; the default `concurrency`. Integer >= 1; where it changes, the next arrival or batch shows it. */
  readonly slots: number;
  /**
   * 0 or 1: batches that a busy instance may prefetch, to hide its wake-up, while at least maxBatchSize or
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
   * Its runs may be repeated, and one with `handle.isApart` disturbs no other and takes no slot: in an instance of its own, where
   * it may crash or hang. `onBatchError` is then `"bisect"` by default.
   * @default false
   */
  readonly runsApart?: boolean | undefined;
  /** Called with an item that was found to have failed its batch, and with its error. */
  found?(item: In, error: unknown): void;
  /**
   * Shortage of cores, 0 (some are idle) … 1 (none is left). Read before each decision.
   * @default 0
   */
  coreShortage?(): number;
  /**
   * Resolves when it can run batches (models loaded and warm); rejects with the reason if it never will. With the runs of its
   * warm-up, without the first of each size on each instance, the batcher can say what batches cost before the first.
   */
  ready(): Promise<readonly RunTime[] | void>;
  run(items: In[], handle: RunHandle): Promise<ArrayLike<Out | Error>>;
  /** Finishes its runs, then releases every resource. Called once. */
  close(): Promise<void>;
}

/** A batch function's view of its batch. */
export interface BatchContext {
  /** Aborts only when every caller of the batch has left, on `runTimeoutMs`, or when a grace period of `close` ends. */
  readonly signal: AbortSignal;
  /** 1, 2, 3 … per batcher; sub-runs of a bisection carry the id of their batch. */
  readonly batchId: number;
  readonly size: number;
  /** 1; counts up with `countRun()`, and when items run again after a run that crashed its worker or never ended. */
  readonly attempt: number;
  /**
   * Stops dispatch for `ms`, at most `maxPauseMs`, like an error with `retryAfterMs`: for a run that retries by itself and
   * knows that the service accepts nothing else meanwhile. No effect if nothing is dispatched (calibration, tests).
   */
  pause(durationMs: number): void;
  /**
   * Call it when the run retries its service by itself: `rateLimit` counts another run, and the run time that policies learn
   * from restarts.
   */
  countRun(): void;
  /**
   * Reports the weight that the service counted for this run. `rateLimit` is corrected by the difference to the items' weights,
   * which may leave a debt; 0 if the service did not count the run.
   * @throws {RangeError} the weight is not a finite number >= 0.
   */
  reportWeight(weight: number): void;
  /**
   * Call it before the run fails if its items are not at fault: they return to their places in the queue and run again. With
   * `pause`, or an error with `retryAfterMs`, they wait until then. A call whose deadline comes first gets the error, as does
   * one without a deadline after total pauses of `maxPauseMs`.
   */
  putBack(): void;
  /**
   * Settles one item with a result or an `Error` before the run has ended. `index` is its position among the items of this
   * run. Only the first answer of an item counts; after the run has ended or was abandoned, an answer has no effect. Can be
   * destructured.
   * @throws {RangeError} there is no item at `index`.
   */
  readonly answer: (index: number, result: unknown) => void;
}

/** The handle that an executor gets with a batch: everything that a batch function sees, and methods to report on the run. */
export interface RunHandle extends BatchContext {
  /** Some items of a batch that crashed its worker or never ended: an executor that `runsApart` runs them apart from the others. */
  readonly isApart: boolean;
  /** Reports the run time in milliseconds, from start to results. Without a report the time from dispatch counts. */
  measured(runMs: number): void;
  /** For an executor that `reportsStart`: the run begins now. Call it again for each attempt. */
  started(): void;
  /** For an executor that `reportsStart`: the run was cut short, and waits to begin again. */
  stopped(): void;
  /**
   * For an executor that settles a run before the run has ended (a thread cannot be stopped): the batch's order keys stay
   * blocked until `ended` settles.
   */
  runsUntil(ended: Promise<unknown>): void;
  /**
   * Calls back with the reason when the signal aborts, and again at `runTimeoutMs` or at the end of a grace period. Cheaper
   * than `signal`, which is created when it is read. Returns a function that unsubscribes.
   */
  onAborted(listener: (reason: unknown) => void): () => void;
  /** The indices of the items without an early answer; undefined if no item of the batch has one. */
  unanswered(): number[] | undefined;
  /** Whether the item has an early answer: an executor that runs a batch again leaves it out. */
  isAnswered(index: number): boolean;
  /** A handle for a run of some of the items, such as one stage of several; its reports count for the whole run. */
  part(indices: readonly number[]): RunPart;
}

/** The handle of a part of a run. */
export interface RunPart extends RunHandle {
  /** The part has ended: its early answers have no effect from now on. */
  end(): void;
}
