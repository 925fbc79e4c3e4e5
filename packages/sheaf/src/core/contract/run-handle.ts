import type { BatchContext } from "./batch-context.ts";

/** The handle that an executor gets with a batch: everything that a batch function sees, and methods to report on the run. */
export interface RunHandle extends BatchContext {
  /** Reports the run time in milliseconds, from start to results. Without a report the time from dispatch counts. */
  measured(runMs: number): void;
  /** For an executor that `reportsStart`: the run begins now. Call it again for each attempt. */
  started(): void;
  /** For an executor that `reportsStart`: a crash of the worker cut the run short, and it waits to begin again. */
  stopped(): void;
  /** Reports that the executor runs the batch again after a crash of its worker; `attempt` counts up. */
  runsAgain(): void;
  /**
   * For an executor that settles a run before the run has ended (a thread cannot be stopped): the batch's order keys stay
   * blocked until `ended` settles.
   */
  runsUntil(ended: Promise<unknown>): void;
  /**
   * Calls back with the reason when the signal aborts, and again past `runTimeoutMs` or at the end of a grace period. Costs
   * less than `signal`, which is made when it is read. Returns a function that ends it.
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
