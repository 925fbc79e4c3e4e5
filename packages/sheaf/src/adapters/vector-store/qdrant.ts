import { createBatcher } from "../../core/create-batcher.ts";
import { checkText } from "../../shared/checks.ts";
import { describe } from "../../shared/describe.ts";
import {
  checkPoint,
  checkQuery,
  checkStoreOptions,
  given,
  lastOfEachId,
  storeOf,
  upsertDefaults,
  type Metric,
  type VectorMatch,
  type VectorPoint,
  type VectorQuery,
  type VectorStore,
  type VectorStoreOptions,
} from "./store.ts";

/** The part of `QdrantClient` of `@qdrant/js-client-rest` that is used. */
export interface QdrantClientLike {
  /** `PUT /collections/{name}/points?wait=true` */
  upsert(collection: string, points: { wait: boolean; points: QdrantPoint[] }): Promise<unknown>;
  /** `POST /collections/{name}/points/query/batch` */
  queryBatch(
    collection: string,
    batch: { searches: { query: number[]; limit: number; filter?: never; with_payload: boolean }[] },
  ): Promise<readonly { readonly points: readonly unknown[] }[]>;
}

export interface QdrantPoint {
  id: string | number;
  vector: number[];
  payload: Record<string, unknown>;
}

export interface QdrantOptions extends VectorStoreOptions {
  /** Name of the collection. Required. */
  readonly collection: string;
  /**
   * The collection's own distance, by which its scores are read: Cosine, Euclid or Dot.
   * @default "cosine"
   */
  readonly metric?: Metric | undefined;
}

/** A filter as Qdrant takes it: `{ must: [{ key, match: { value } }] }` … */
export type QdrantFilter = Readonly<Record<string, unknown>>;

/**
 * A Qdrant collection, through the official REST client. Ids are unsigned integers or UUIDs. A batch of upserts is one
 * request that waits until the points are stored; a batch of queries is one request with any limits and filters. A
 * request that Qdrant refuses as wrong (400, 422) is taken apart until the wrong point stands alone; writing the others
 * again changes nothing. Other failures are the service's: their callers get them, and 429 pauses as long as Qdrant asks.
 */
export function qdrantStore(client: QdrantClientLike, options: QdrantOptions): VectorStore<QdrantFilter> {
  const { collection, metric = "cosine", upserts, queries } = options;
  if (typeof client?.upsert !== "function" || typeof client.queryBatch !== "function") {
    throw new TypeError("client must be a QdrantClient of @qdrant/js-client-rest, with upsert() and queryBatch()");
  }
  checkStoreOptions(options, "collection");
  checkText("collection", collection);
  const whenRefused = { onBatchError: "bisect", shouldBisect: isRefusal } as const;

  const upsert = createBatcher<VectorPoint, void>(
    async (points) => {
      const sent = lastOfEachId(points).map((place) => pointOf(points[place]!));
      await client.upsert(collection, { wait: true, points: sent }).catch(askForPause);
      return points.map(() => undefined);
    },
    {
      ...upsertDefaults,
      // One at a time: two requests that write one id would race.
      concurrency: 1,
      ...whenRefused,
      ...given(upserts),
      name: `upsert into ${collection}`,
      groupKey: checkPoint,
    },
  );

  const query = createBatcher<VectorQuery<QdrantFilter>, VectorMatch[]>(
    async (items) => {
      const searches = items.map(({ vector, limit = 10, filter }) => ({
        query: Array.from(vector),
        limit,
        ...(filter === undefined ? {} : { filter: filter as never }),
        with_payload: true,
      }));
      const answers = await client.queryBatch(collection, { searches }).catch(askForPause);
      if (!Array.isArray(answers)) throw new TypeError(`Qdrant's reply must be an array, got ${describe(answers)}`);
      return answers.map((answer) => matchesOf(answer, metric));
    },
    {
      ...whenRefused,
      ...given(queries),
      name: `query ${collection}`,
      groupKey: checkQuery,
    },
  );
  return storeOf({ metric, upsert, query });
}

interface ScoredPoint {
  readonly id: string | number;
  readonly score: number;
  readonly payload?: Record<string, unknown> | null;
}

const pointOf = ({ id, vector, payload }: VectorPoint): QdrantPoint => ({
  id,
  vector: Array.from(vector),
  payload: { ...payload },
});

function matchesOf(answer: unknown, metric: Metric): VectorMatch[] | Error {
  const { points } = (answer ?? {}) as { readonly points?: unknown };
  if (Array.isArray(points)) return points.map((point) => matchOf(point as ScoredPoint, metric));
  return new TypeError(`Qdrant's reply to a query must have points, got ${describe(answer)}`);
}

function matchOf({ id, score, payload }: ScoredPoint, metric: Metric): VectorMatch {
  const distance = metric === "cosine" ? 1 - score : metric === "dot" ? -score : score;
  return { id, distance, payload: payload ?? {} };
}

function isRefusal(error: unknown): boolean {
  const { status } = (error ?? {}) as { readonly status?: unknown };
  return status === 400 || status === 422;
}

/** Qdrant's client gives Retry-After in seconds; a batcher reads `retryAfterMs`. */
function askForPause(error: unknown): never {
  const retryAfter = Number((error as { retry_after?: unknown } | null)?.retry_after);
  if (error instanceof Error && retryAfter > 0) Object.assign(error, { retryAfterMs: retryAfter * 1000 });
  throw error;
}
