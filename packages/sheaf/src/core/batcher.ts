import type { BatchFunction, Executor } from "./executor.ts";
import type { BatcherOptions, CallOptions } from "./options.ts";
import type { BatchRecord, DispatchReason } from "../policies/policy.ts";

/** Quantiles in milliseconds over the last 60 s; 0 without data. */
export interface Distribution {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

/** A snapshot. Counts are since construction, distributions over the last 60 s. */
export interface BatcherStats {
  readonly name: string;
  readonly queued: number;
  /** Batches in flight. */
  readonly inFlight: number;
  readonly items: { ok: number; error: number; timeout: number; aborted: number; rejected: number };
  readonly batches: number;
  readonly bisectRuns: number;
  readonly abandonedRuns: number;
  readonly meanBatchSize: number;
  readonly fillRate: number;
  readonly queueWaitMs: Distribution;
  readonly runMs: Distribution;
  readonly latencyMs: Distribution;
  readonly costModel: { fixedMs: number; perItemMs: number; r2: number } | null;
  readonly speedup: number | null;
  readonly expectedSpeedup: number | null;
  readonly cost: { total: number; perItem: number; perItemUnbatched: number } | null;
  readonly reasons: Readonly<Partial<Record<DispatchReason, number>>>;
  readonly advice: readonly string[];
}

/** Callable: `await batcher(item)`. Its methods can be destructured. */
export interface Batcher<In, Out> {
  (item: In, options?: CallOptions | unknown): Promise<Out>;
  readonly name: string;
  many(items: Iterable<In>, options?: CallOptions): Promise<Out[]>;
  settle(items: Iterable<In>, options?: CallOptions): Promise<PromiseSettledResult<Out>[]>;
  map(items: Iterable<In> | AsyncIterable<In>, options?: CallOptions): AsyncIterableIterator<Out>;
  flush(): Promise<void>;
  drain(): Promise<void>;
  close(options?: { readonly graceMs?: number | undefined }): Promise<void>;
  ready(): Promise<void>;
  stats(): BatcherStats;
  subscribe(listener: (record: BatchRecord) => void): () => void;
  [Symbol.asyncDispose](): Promise<void>;
}

export function createBatcher<In, Out>(
  _run: BatchFunction<In, Out> | Executor<In, Out>,
  _options: BatcherOptions<In, Out> = {},
): Batcher<In, Exclude<Out, Error>> {
  throw new Error("under construction");
}
