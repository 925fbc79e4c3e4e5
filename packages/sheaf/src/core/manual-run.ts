import { BaseRunHandle } from "./contract/base-run-handle.ts";
import type { RunHandle } from "./contract/run-handle.ts";

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
