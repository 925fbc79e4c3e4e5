import type { BatchRecord } from "../policies/policy.ts";
import type { Answer } from "./answer.ts";
import type { CallOptions } from "./options.ts";
import type { BatcherStats } from "./observe/stats.ts";

/**
 * What a caller gets: an `Error` in a place rejects, so error classes drop out. Plain objects that look like one stay.
 */
export type Result<Out> = Out extends Error ? ("stack" extends keyof Out ? never : Out) : Out;

/** What is in a batcher now. */
export interface BatcherLoad {
  /** Items waiting. */
  readonly queued: number;
  /** Batches in flight. */
  readonly inFlight: number;
}

/** What a batcher may do at once. */
export interface BatcherCapacity {
  /** Most items in a batch. */
  readonly maxBatchSize: number;
  /** Most batches in flight. */
  readonly concurrency: number;
}

/** Callable as `batcher(item)`. Its methods can be destructured. */
export interface Batcher<In, Out> {
  /**
   * One item in, its own result out. A second argument that is not an object is ignored, so that `items.map(batcher)`
   * works.
   * @throws {BatcherError} `QUEUE_FULL`, `CLOSED`, `TIMEOUT`, `ITEM_TOO_LARGE`, or what became of its batch.
   */
  (item: In, options?: CallOptions | number): Promise<Out>;
  readonly name: string;
  /** Its options, with the defaults filled in. */
  readonly capacity: BatcherCapacity;
  /** As `batcher(item, options)`, with how the result came about: which batch, how long it waited and ran. */
  ask(item: In, options?: CallOptions): Promise<Answer<Out>>;
  /** As `settle`, with how each result came about. */
  askAll(items: Iterable<In>, options?: CallOptions): Promise<PromiseSettledResult<Answer<Out>>[]>;
  /** Several items, results in order; rejects with the first error, the other items run on. `[]` gives `[]`. */
  many(items: Iterable<In>, options?: CallOptions): Promise<Out[]>;
  /** Several items, every outcome in order; never rejects for an item. */
  settle(items: Iterable<In>, options?: CallOptions): Promise<PromiseSettledResult<Out>[]>;
  /**
   * Any number of items in bounded memory: pulls only while there is room, yields results in order, ends on the first
   * error and closes its source. `timeoutMs` counts for each item from when it was pulled.
   */
  map(items: Iterable<In> | AsyncIterable<In>, options?: CallOptions): AsyncGenerator<Out, void, void>;
  /** What waits now goes without further holding, as slots come free; resolves when those have settled. */
  flush(): Promise<void>;
  /** Flushes; resolves when everything accepted before it has settled. */
  drain(): Promise<void>;
  /**
   * Takes no more calls (`CLOSED`), finishes what is in, then closes the executor. After `graceMs` (default none) what
   * is left gets `CLOSED`. Always the same promise.
   */
  close(options?: { readonly graceMs?: number | undefined }): Promise<void>;
  /** Resolves when the executor can run batches; rejects with the reason it never will. */
  ready(): Promise<void>;
  stats(): BatcherStats;
  /** What waits and runs now. Costs next to nothing, unlike `stats()`. */
  readonly load: BatcherLoad;
  /** Calls back once per batch; returns a function that ends it. A listener that throws is reported once. */
  subscribe(listener: (record: BatchRecord) => void): () => void;
  [Symbol.asyncDispose](): Promise<void>;
}
