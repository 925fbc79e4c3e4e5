import type { BatchRecord } from "../../policies/policy.ts";
import type { CallOptions } from "./options.ts";
import type { BatcherStats } from "./stats.ts";

/**
 * The result of a call: an `Error` in a place rejects, so error classes drop out, and promises, which are refused. Plain objects
 * that look like an error stay.
 */
export type Result<Out> =
  Out extends PromiseLike<unknown> ? never : Out extends Error ? ("stack" extends keyof Out ? never : Out) : Out;

/** Counts of the waiting items and the running batches of a batcher. */
export interface BatcherPending {
  /** Items waiting. */
  readonly queued: number;
  /** Those of them that take the room of bulk calls. */
  readonly bulk: number;
  /** Batches in flight. */
  readonly inFlight: number;
}

/** The limits of a batcher. */
export interface BatcherCapacity {
  /** Most items in a batch. */
  readonly maxBatchSize: number;
  /** Most batches in flight; where the number is learned, its bound (256), and `stats().concurrency` has the number now. */
  readonly concurrency: number;
}

/** Callable as `batcher(item)`. Its methods can be destructured. */
export interface Batcher<In, Out> {
  /**
   * One item in, its own result out. A second argument that is not an object is ignored, so that `items.map(batcher)`
   * works.
   * @throws {BatcherError} `QUEUE_FULL`, `CLOSED`, `TIMEOUT`, `ITEM_TOO_LARGE`, or the error of its batch.
   */
  (item: In, options?: CallOptions | number): Promise<Out>;
  readonly name: string;
  /** Its options, with the defaults filled in. */
  readonly capacity: BatcherCapacity;
  /** Like `batcher(item, options)`, but gives the result with its batch, its queue wait and its run time. */
  detailed(item: In, options?: CallOptions): Promise<DetailedResult<Out>>;
  /** Like `settle`, with the batch, the queue wait and the run time of each result. */
  settleDetailed(
    items: Iterable<In> & object,
    options?: CallOptions,
  ): Promise<PromiseSettledResult<DetailedResult<Out>>[]>;
  /**
   * Several items, results in order; rejects with the first error while the other items run on. `[]` resolves to `[]`. A text
   * is not accepted as a list of characters.
   */
  many(items: Iterable<In> & object, options?: CallOptions): Promise<Out[]>;
  /** Several items, every outcome in order; never rejects for an item. */
  settle(items: Iterable<In> & object, options?: CallOptions): Promise<PromiseSettledResult<Out>[]>;
  /**
   * Any number of items in bounded memory: pulls only while there is room, yields results in order, ends on the first
   * error and closes its source. `timeoutMs` counts for each item from when it was pulled.
   */
  map(items: (Iterable<In> & object) | AsyncIterable<In>, options?: CallOptions): AsyncGenerator<Out, void, void>;
  /** Sends the waiting items without further holding, as slots come free; resolves when they have settled. */
  flush(): Promise<void>;
  /** Flushes; resolves when everything accepted before it has settled. */
  drain(): Promise<void>;
  /**
   * Refuses new calls (`CLOSED`), finishes accepted ones, then closes the executor. Calls left after `graceMs` get `CLOSED`.
   * Always the same promise.
   */
  close(options?: {
    /**
     * Time for accepted calls to finish, in milliseconds.
     * @default none: as long as they take
     */
    readonly graceMs?: number | undefined;
  }): Promise<void>;
  /** Resolves when the executor can run batches; rejects with the reason it never will. */
  ready(): Promise<void>;
  stats(): BatcherStats;
  /** Counts of waiting items and running batches. Reading it costs next to nothing, unlike `stats()`. */
  readonly pending: BatcherPending;
  /** Calls back once per batch; returns a function that ends it. A listener that throws is reported once. */
  subscribe(listener: (record: BatchRecord) => void): () => void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The result of one item, and how it came about. Times in milliseconds. */
export interface DetailedResult<Out> {
  readonly value: Out;
  /** Of its batch, as the batch function sees it. */
  readonly batchId: number;
  /** Items in that batch; after a bisection, in the batch that failed. */
  readonly batchSize: number;
  /** Call → dispatch; 0 for a call that joined a running one. */
  readonly queueMs: number;
  /** The run of its batch, as its record has it; where a bisection isolated its failures, dispatch → result. */
  readonly runMs: number;
}
