import {
  createBatcher,
  type BatchContext,
  type Batcher,
  type BatcherOptions,
  type Priority,
  type Result,
} from "../index.ts";
import { defined } from "../shared/defined.ts";

export interface WorkerLike {
  close(): Promise<void>;
}

/** Options of `batchProcessor`: those of a batcher, three of them with defaults of their own. */
export interface BatchProcessorOptions<Job, Out> extends Omit<
  BatcherOptions<Job, Out>,
  "concurrency" | "onBatchError" | "onQueueFull"
> {
  /**
   * Most batches in flight; integer >= 1. The worker's own concurrency follows from it.
   * @default 1
   * @see BatchProcessor.concurrency
   */
  readonly concurrency?: number | undefined;
  /**
   * After a failed run, `"bisect"` runs halves of the batch to isolate the bad jobs; `"fail"` fails every job of the
   * batch.
   * @default "bisect"
   * @see shouldBisect
   */
  readonly onBatchError?: "fail" | "bisect" | undefined;
  /**
   * With a full queue a job waits for room, or fails with `QUEUE_FULL`.
   * @default "wait"
   * @see maxQueueSize
   */
  readonly onQueueFull?: "reject" | "wait" | undefined;
}

/** What a worker needs to run its jobs in batches. */
export interface BatchProcessor<Job, Out> {
  /** The worker's processor. Three parameters: BullMQ hands an AbortSignal only to a processor that has a third. */
  readonly process: (job: Job, token: string | undefined, signal?: AbortSignal) => Promise<Out>;
  /** For the worker's `concurrency`: enough jobs to fill every batch in flight and the next one. */
  readonly concurrency: number;
  readonly batcher: Batcher<Job, Out>;
  /**
   * Shuts down: the worker takes no more jobs, waiting ones go at once. Resolves when all accepted jobs have been completed or
   * failed.
   */
  close(worker: WorkerLike): Promise<void>;
}

const processorDefaults = { maxBatchSize: 32, concurrency: 1, onBatchError: "bisect", onQueueFull: "wait" } as const;

/**
 * Batches for BullMQ's free edition: a worker runs many jobs at once, and concurrent jobs share a batch. A value completes its job;
 * an `Error` at its index fails it, with the job's own attempts and backoff. BullMQ delivers at least once.
 * @throws {TypeError | RangeError} for a wrong option; the message quotes its value.
 */
export function batchProcessor<Job extends object, Out>(
  run: (jobs: Job[], context: BatchContext) => ArrayLike<Out | Error> | PromiseLike<ArrayLike<Out | Error>>,
  options: BatchProcessorOptions<Job, Out> = {},
): BatchProcessor<Job, Result<Out>> {
  // The queue delivers at least once anyway, so jobs must be safe to run again; the worker's concurrency is the bound, and a job
  // must not fail because it was fetched too early.
  const settings = { ...processorDefaults, ...defined(options) };
  const concurrency = (settings.concurrency + 1) * settings.maxBatchSize;
  if (!Number.isFinite(concurrency)) {
    throw new RangeError(
      "maxBatchSize and concurrency must be finite, because the worker's concurrency follows from them",
    );
  }
  const batcher = createBatcher<Job, Out>(run, settings);
  let priority: Priority = "interactive";
  return {
    // A job that stalled may have killed its worker, so it runs alone.
    process: (job, _token, signal) => batcher(job, { signal, priority, alone: hasStalled(job) }),
    concurrency,
    batcher,
    close: async (worker) => {
      // Jobs that the worker was still fetching must not wait for a window to fill.
      priority = "immediate";
      void batcher.flush();
      await worker.close();
      await batcher.close();
    },
  };
}

/** BullMQ counts how often it took a job from a worker that had lost it. */
function hasStalled(job: { readonly stalledCounter?: unknown }): boolean {
  return Number(job.stalledCounter) > 0;
}
