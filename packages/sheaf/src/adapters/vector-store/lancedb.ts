import { createBatcher } from "../../core/create-batcher.ts";
import {
  checkPoint,
  checkQuery,
  checkStoreOptions,
  checkVector,
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

/** The part of a LanceDB `Table` that is used. */
export interface LanceTable {
  readonly name: string;
  schema(): Promise<{ readonly fields: readonly { readonly name: string; readonly type: unknown }[] }>;
  mergeInsert(on: string): {
    whenMatchedUpdateAll(): {
      whenNotMatchedInsertAll(): { execute(rows: Record<string, unknown>[]): Promise<unknown> };
    };
  };
  vectorSearch(vector: number[]): unknown;
  /** Takes the handle to the newest version. */
  checkoutLatest?(): Promise<unknown>;
}

interface LanceQuery {
  column(name: string): LanceQuery;
  distanceType(metric: Metric): LanceQuery;
  limit(count: number): LanceQuery;
  where(predicate: string): LanceQuery;
  select(columns: string[]): LanceQuery;
  addQueryVector(vector: number[]): LanceQuery;
  toArray(): Promise<Record<string, unknown>[]>;
}

export interface LanceDbOptions extends VectorStoreOptions {
  /**
   * Column of the id.
   * @default "id"
   */
  readonly id?: string | undefined;
  /**
   * Column of the vector.
   * @default "vector"
   */
  readonly vector?: string | undefined;
}

/**
 * A LanceDB table, whose every write is a new version: one for each batch instead of one for each point. A point's payload
 * is the table's other columns. Vectors are checked here, since LanceDB stores one of the wrong length silently, and
 * so are ids that come twice in a batch, since its merge would store both. Of all stores of a table in this process one
 * writes at a time, to its newest version: two merges at once, or one from an older version, would store an id twice. After a
 * write of another store of this process, queries go to the newest version too. A filter is LanceDB's own SQL text; queries with the
 * same filter and limit share one search.
 */
export function lanceDbStore(table: LanceTable, options: LanceDbOptions = {}): VectorStore<string> {
  const { id = "id", vector = "vector", metric = "cosine", upserts, queries } = options;
  if (typeof table?.mergeInsert !== "function" || typeof table.vectorSearch !== "function") {
    throw new TypeError("table must be a LanceDB Table, with mergeInsert() and vectorSearch()");
  }
  checkStoreOptions(options, "id", "vector");
  let reading: Promise<Shape> | undefined;
  const shape = (): Promise<Shape> => {
    reading ??= readShape(table, id, vector);
    reading.catch(() => (reading = undefined));
    return reading;
  };
  /** How many writes of this process the handle has seen. */
  let seen = 0;
  const toNewest = async (): Promise<void> => {
    const { count } = writes;
    await table.checkoutLatest?.();
    seen = count;
  };

  const upsert = createBatcher<VectorPoint, void>(
    async (points) => {
      const { dimensions, payload } = await shape();
      const results: (Error | undefined)[] = points.map((point) => {
        const unknown = Object.keys(point.payload ?? {}).find((column) => !payload.includes(column));
        if (unknown !== undefined) {
          return new TypeError(`${table.name} has no column "${unknown}"; it has ${payload.join(", ")}`);
        }
        return complaintOn(point.vector, dimensions);
      });
      const good = points.filter((_, place) => results[place] === undefined);
      const rows = lastOfEachId(good).map((place) => rowOf(good[place]!, payload, id, vector));
      if (rows.length > 0) {
        await asOnlyWriter(table.name, async () => {
          await toNewest();
          try {
            await table.mergeInsert(id).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(rows);
          } finally {
            seen++;
            writes.count++;
          }
        });
      }
      return results;
    },
    {
      ...upsertDefaults,
      concurrency: 1,
      // Writing a point again changes nothing, and LanceDB's errors do not name the row.
      onBatchError: "bisect",
      ...given(upserts),
      name: `upsert into ${table.name}`,
      groupKey: checkPoint,
    },
  );

  const query = createBatcher<VectorQuery<string>, VectorMatch[]>(
    async (items) => {
      const { dimensions, payload } = await shape();
      const matches: (VectorMatch[] | Error)[] = items.map((item) => complaintOn(item.vector, dimensions) ?? []);
      const places = [...items.keys()].filter((place) => !(matches[place] instanceof Error));
      const [first, ...others] = places.map((place) => Array.from(items[place]!.vector));
      if (first === undefined) return matches;
      // A point that another store of this process has written is found too.
      if (seen !== writes.count) await toNewest();
      const { limit = 10, filter } = items[0]!;
      let search = table.vectorSearch(first) as LanceQuery;
      for (const other of others) search = search.addQueryVector(other);
      search = search.column(vector).distanceType(metric).limit(limit);
      if (filter !== undefined) search = search.where(filter);
      const rows = await search.select([id, ...payload, "_distance"]).toArray();
      for (const row of rows) {
        // With several vectors each row says which of them it belongs to.
        const place = places[Number(row["query_index"] ?? 0)]!;
        (matches[place] as VectorMatch[]).push(matchOf(row, payload, id, metric));
      }
      for (const found of matches) if (Array.isArray(found)) found.sort((a, b) => a.distance - b.distance);
      return matches;
    },
    {
      // No bisection: only the filter can be wrong, and the batch shares it.
      ...given(queries),
      name: `query ${table.name}`,
      groupKey: (item) => {
        checkQuery(item);
        return JSON.stringify([item.limit ?? 10, item.filter]);
      },
    },
  );
  return storeOf({ metric, upsert, query });
}

/** What all stores of this process share. */
interface Writes {
  /** The current write of each table; tables of one name in two databases merely wait for each other. */
  readonly underWay: Map<string, Promise<unknown>>;
  count: number;
}

const shared = Symbol.for("sheaf.lanceDbWrites");
// One for the whole process: a program may load this package by `import` here and by `require` there.
const writes = ((globalThis as { [shared]?: Writes })[shared] ??= { underWay: new Map(), count: 0 });

/** LanceDB's merge reads before it writes, and does not see a merge that runs at the same time. */
async function asOnlyWriter(name: string, write: () => Promise<void>): Promise<void> {
  const before = writes.underWay.get(name);
  const written = before === undefined ? write() : before.then(write);
  const ended = written.catch(() => undefined);
  writes.underWay.set(name, ended);
  try {
    await written;
  } finally {
    if (writes.underWay.get(name) === ended) writes.underWay.delete(name);
  }
}

interface Shape {
  readonly dimensions: number | undefined;
  /** Every column but id and vector. */
  readonly payload: readonly string[];
}

async function readShape(table: LanceTable, id: string, vector: string): Promise<Shape> {
  const { fields } = await table.schema();
  const names = fields.map(({ name }) => name);
  for (const needed of [id, vector]) {
    if (!names.includes(needed)) {
      throw new TypeError(`${table.name} has no column "${needed}"; it has ${names.join(", ")}`);
    }
  }
  const type = fields.find(({ name }) => name === vector)?.type as { readonly listSize?: number } | undefined;
  return { dimensions: type?.listSize, payload: names.filter((name) => name !== id && name !== vector) };
}

/** A column that the payload leaves out is null: an upsert replaces the whole row. */
function rowOf(point: VectorPoint, payload: readonly string[], id: string, vector: string): Record<string, unknown> {
  const rest = payload.map((column) => [column, point.payload?.[column] ?? null] as const);
  return { [id]: point.id, [vector]: Array.from(point.vector), ...Object.fromEntries(rest) };
}

function matchOf(row: Record<string, unknown>, payload: readonly string[], id: string, metric: Metric): VectorMatch {
  const found = row["_distance"] as number;
  // LanceDB gives the square of the Euclidean distance, and 1 − the dot product.
  const distance = metric === "l2" ? Math.sqrt(found) : metric === "dot" ? found - 1 : found;
  const rowId = row[id];
  return {
    id: typeof rowId === "bigint" ? Number(rowId) : (rowId as string | number),
    distance,
    payload: Object.fromEntries(payload.map((column) => [column, row[column]])),
  };
}

function complaintOn(vector: ArrayLike<number>, dimensions: number | undefined): Error | undefined {
  try {
    checkVector(vector, dimensions);
    return undefined;
  } catch (error) {
    return error as Error;
  }
}
