/** A batch function's view of its batch. */
export interface BatchContext {
  /** Aborts only when every caller of the batch has left, on `runTimeoutMs`, or when a grace period of `close` ends. */
  readonly signal: AbortSignal;
  /** 1, 2, 3 … per batcher; sub-runs of a bisection carry the id of their batch. */
  readonly batchId: number;
  readonly size: number;
  /** 1; counts up with `countRun()`, and when an executor runs the batch again after a crash of its worker. */
  readonly attempt: number;
  /**
   * Dispatch waits that many milliseconds, as after an error with `retryAfterMs`: for a run that will try again by itself
   * and knows that the service wants nothing else meanwhile. No effect where nothing is dispatched (calibration, tests).
   */
  pause(durationMs: number): void;
  /**
   * Call it when the run asks its service again by itself: `rateLimit` counts one run more, and the run time that
   * policies learn from begins now.
   */
  countRun(): void;
  /**
   * The weight that the service counted for this run. `rateLimit` is corrected by the difference to the items' weights, which
   * may leave a debt; 0 where the service says that it did not count the run.
   * @throws {RangeError} the weight is not a finite number >= 0.
   */
  reportWeight(weight: number): void;
  /**
   * Call it before the run fails where its items are not to blame: they go back to their places in the queue instead of
   * failing, and run again. With `pause`, or an error with `retryAfterMs`, they wait until then. A call whose deadline comes
   * first gets the error, and so does one without a deadline after pauses of `maxPauseMs` in all.
   */
  putBack(): void;
  /**
   * Gives one item its result, or an `Error`, before the run has ended. `index` is its place among the items of this run.
   * Only the first answer of an item counts; once the run has ended or was given up, an answer has no effect. Can be
   * destructured.
   * @throws {RangeError} there is no item at `index`.
   */
  readonly answer: (index: number, result: unknown) => void;
}
