import { check, checkOptions, checkText, isInteger, oneOf, type Check } from "../../shared/checks.ts";
import { describe } from "../../shared/describe.ts";
import type { Batcher } from "../../core/contract/batcher.ts";
import type { BatcherOptions } from "../../core/contract/options.ts";
import { batcherChecks } from "../../core/contract/settings.ts";
import { defined } from "../../shared/defined.ts";

/** A stored point: an id, a vector of the store's dimensions, and its payload. */
export interface VectorPoint {
  readonly id: string | number;
  readonly vector: ArrayLike<number>;
  /**
   * Values stored with the vector. LanceDB and Qdrant replace the whole payload; pgvector leaves columns that are
   * not given as they are.
   * @default {}
   */
  readonly payload?: Readonly<Record<string, unknown>> | undefined;
}

/** A query for the points nearest to a vector. `Filter` is the store's own. */
export interface VectorQuery<Filter> {
  readonly vector: ArrayLike<number>;
  /**
   * Most matches; an integer from 1 to 10,000.
   * @default 10
   */
  readonly limit?: number | undefined;
  /**
   * Only points that pass it are matches, in the store's own form.
   * @default none
   */
  readonly filter?: Filter | undefined;
}

/** A point that was found, nearest first. */
export interface VectorMatch {
  readonly id: string | number;
  /** Smaller is nearer, in every store: 1 − cosine, the Euclidean distance, or minus the dot product. */
  readonly distance: number;
  readonly payload: Readonly<Record<string, unknown>>;
}

export type Metric = "cosine" | "l2" | "dot";

/** One batcher for each direction; both are batchers like any other, with `flush`, `close` and `stats`. */
export interface VectorStore<Filter> {
  readonly metric: Metric;
  /** Resolves when the point is stored. The last of several upserts of one id that wait together wins. */
  readonly upsert: Batcher<VectorPoint, void>;
  readonly query: Batcher<VectorQuery<Filter>, VectorMatch[]>;
  /** Finishes the waiting calls of both. The client stays open. */
  close(options?: {
    /**
     * Time for accepted calls to finish, in milliseconds.
     * @default none: as long as they take
     */
    readonly graceMs?: number | undefined;
  }): Promise<void>;
}

/** Options of the batchers that are left to the user. */
export interface StoreBatcherOptions extends Omit<
  BatcherOptions<never, never>,
  | "maxBatchSize"
  | "concurrency"
  | "overloadOrder"
  | "onBatchError"
  | "groupKey"
  | "fairKey"
  | "shareOf"
  | "orderKey"
  | "dedupeKey"
  | "runOne"
  | "weigh"
  | "resultKey"
  | "onMissing"
  | "name"
> {
  /**
   * Most points or queries in a batch; integer >= 1 or Infinity.
   * @default 200 for upserts, 32 for queries
   */
  readonly maxBatchSize?: number | undefined;
  /**
   * Most batches in flight; integer >= 1.
   * @default 4; 1 for upserts to LanceDB and Qdrant, and for a single connection to PostgreSQL
   */
  readonly concurrency?: number | undefined;
  /**
   * Under standing overload `"arrival"` sends the oldest first, `"newest"` the newest.
   * @default "arrival" for upserts, "newest" for queries
   * @see BatcherOptions.overloadOrder
   */
  readonly overloadOrder?: "newest" | "arrival" | undefined;
  /**
   * After a failed batch, `"bisect"` runs halves of it to isolate the bad points or queries.
   * @default "bisect"; "fail" for queries of LanceDB
   */
  readonly onBatchError?: "fail" | "bisect" | undefined;
}

export interface VectorStoreOptions {
  /**
   * Measure of how near two vectors are.
   * @default "cosine"
   */
  readonly metric?: Metric | undefined;
  /**
   * Options of the batcher that writes.
   * @default those of `StoreBatcherOptions`
   * @example
   * lanceDbStore(table, { upserts: { maxBatchSize: 1000 } });
   */
  readonly upserts?: StoreBatcherOptions | undefined;
  /**
   * Options of the batcher that asks.
   * @default those of `StoreBatcherOptions`
   */
  readonly queries?: StoreBatcherOptions | undefined;
}

// Of two writes of one id the later one must win, whatever the load.
export const upsertDefaults = { maxBatchSize: 200, overloadOrder: "arrival" } as const;

/** The options for a batcher of any items. */
export function given<In, Out>(
  options: StoreBatcherOptions = {},
): Pick<BatcherOptions<In, Out>, keyof StoreBatcherOptions> {
  return defined(options);
}

const checkBatcher: Check = (name, value) => checkOptions(value, batcherChecks, name);

const storeChecks: Record<keyof VectorStoreOptions, Check> = {
  metric: oneOf("cosine", "l2", "dot"),
  upserts: checkBatcher,
  queries: checkBatcher,
};

/** `own`: further options of the store, all of them names. @throws {TypeError | RangeError} */
export function checkStoreOptions(options: VectorStoreOptions, ...own: readonly string[]): void {
  checkOptions(options, { ...storeChecks, ...Object.fromEntries(own.map((name) => [name, checkText])) });
}

/**
 * As a groupKey: all valid points are of one group.
 * @throws {TypeError} an id that is neither a non-empty string nor a finite number, or an invalid vector.
 */
export function checkPoint(point: VectorPoint): void {
  const { id, vector } = (point ?? {}) as Partial<VectorPoint>;
  if ((typeof id !== "string" || id === "") && !Number.isFinite(id)) {
    throw new TypeError(`a point needs an id, a non-empty string or a number, got ${describe(id)}`);
  }
  checkVector(vector, undefined);
}

/** As a groupKey, like `checkPoint`. @throws {TypeError | RangeError} */
export function checkQuery(query: VectorQuery<unknown>): void {
  const { vector, limit = 10 } = (query ?? {}) as Partial<VectorQuery<unknown>>;
  checkVector(vector, undefined);
  check(isInteger(limit, 1, 10_000), "limit", "an integer from 1 to 10000", limit);
}

/** @throws {TypeError} if it is not a vector of finite numbers, of this many dimensions where they are known. */
export function checkVector(vector: unknown, dimensions: number | undefined): asserts vector is ArrayLike<number> {
  const { length } = (vector ?? {}) as { readonly length?: unknown };
  const isList = typeof vector === "object" && typeof length === "number" && length >= 1;
  check(isList, "vector", "an array of numbers", vector, TypeError);
  for (let i = 0; i < length; i++) {
    const value = (vector as ArrayLike<unknown>)[i];
    if (!Number.isFinite(value)) throw new TypeError(`vector must hold finite numbers, got ${String(value)} at ${i}`);
  }
  if (dimensions !== undefined && length !== dimensions) {
    throw new TypeError(`vector must have ${dimensions} dimensions, got ${length}`);
  }
}

/** The place of the last point of every id, in order: an earlier one would be overwritten at once. */
export function lastOfEachId(points: readonly VectorPoint[]): number[] {
  const last = new Map<string, number>();
  points.forEach(({ id }, place) => last.set(`${typeof id} ${id}`, place));
  return [...last.values()].sort((a, b) => a - b);
}

/** A store whose `close` closes both directions at once. */
export const storeOf = <Filter>(parts: Omit<VectorStore<Filter>, "close">): VectorStore<Filter> => ({
  ...parts,
  close: async (options) => {
    await Promise.all([parts.upsert.close(options), parts.query.close(options)]);
  },
});
