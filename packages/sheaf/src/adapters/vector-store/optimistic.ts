import { checkFunction, checkOptions } from "../../shared/checks.ts";
import type { CallOptions } from "../../core/contract/options.ts";
import type { Metric, VectorMatch, VectorPoint, VectorQuery, VectorStore } from "./store.ts";

export interface OptimisticOptions<Filter> {
  /**
   * Whether a waiting point passes a filter; queries with a filter need it.
   * @default none
   * @example
   * optimistic(store, { matches: ({ payload }, { lang }) => payload?.["lang"] === lang });
   */
  readonly matches?: ((point: VectorPoint, filter: Filter) => boolean) | undefined;
}

/** A store as this process will see it once its own writes have arrived. */
export interface OptimisticStore<Filter> {
  /** Visible to `query` and `get` at once; taken back if the write fails. Resolves when it is stored. */
  upsert(point: VectorPoint, options?: CallOptions): Promise<void>;
  query(query: VectorQuery<Filter>, options?: CallOptions): Promise<VectorMatch[]>;
  /** The point with this id while it waits, else undefined. */
  get(id: string | number): VectorPoint | undefined;
  /** Waiting points; never more than the store's `maxQueueSize` and those in flight. */
  readonly pending: number;
}

/**
 * Read-your-writes without waiting: points whose write is under way are kept here and laid over the store's results, with
 * distances worked out here. Other processes see them when they are stored.
 */
export function optimistic<Filter>(
  store: VectorStore<Filter>,
  options: OptimisticOptions<Filter> = {},
): OptimisticStore<Filter> {
  checkOptions(options, { matches: checkFunction });
  const pending = new Map<string, VectorPoint>();
  return {
    upsert(point, callOptions) {
      const key = String(point.id);
      pending.set(key, point);
      const settle = (): void => {
        // Unless a newer write of the id has replaced it.
        if (pending.get(key) === point) pending.delete(key);
      };
      const stored = store.upsert(point, callOptions);
      stored.then(settle, settle);
      return stored;
    },
    async query(query, callOptions) {
      const { limit = 10, filter } = query;
      if (filter !== undefined && options.matches === undefined) {
        throw new TypeError("a query with a filter needs matches(point, filter), to tell which waiting points pass it");
      }
      // A snapshot: a point stored while the query runs may or may not be in its result.
      const over = [...pending.values()];
      const hidden = new Set(over.map(({ id }) => String(id)));
      const found = await store.query({ ...query, limit: Math.min(10_000, limit + over.length) }, callOptions);
      const laid = over
        // One of another length has no distance; the store will refuse it.
        .filter(({ vector }) => vector.length === query.vector.length)
        .filter((point) => filter === undefined || options.matches!(point, filter))
        .map((point): VectorMatch => ({
          id: point.id,
          distance: distanceBetween(query.vector, point.vector, store.metric),
          payload: { ...point.payload },
        }));
      return [...found.filter(({ id }) => !hidden.has(String(id))), ...laid]
        .sort((a, b) => a.distance - b.distance)
        .slice(0, limit);
    },
    get: (id) => pending.get(String(id)),
    get pending() {
      return pending.size;
    },
  };
}

function distanceBetween(a: ArrayLike<number>, b: ArrayLike<number>, metric: Metric): number {
  let dot = 0;
  let squaresOfA = 0;
  let squaresOfB = 0;
  let squares = 0;
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [a[i]!, b[i]!];
    dot += x * y;
    squaresOfA += x * x;
    squaresOfB += y * y;
    squares += (x - y) ** 2;
  }
  if (metric === "dot") return -dot;
  return metric === "l2" ? Math.sqrt(squares) : 1 - dot / Math.sqrt(squaresOfA * squaresOfB);
}
