import { createBatcher } from "../../core/create-batcher.ts";
import { connectionOf, type PostgresClient, type ResultRow } from "../shared/postgres/client.ts";
import { encode } from "../shared/postgres/encode.ts";
import { checkNames, qualified, quoted, type TableName } from "../shared/postgres/identifier.ts";
import { isRowError } from "../shared/postgres/row-error.ts";
import { ordinal, placeOf, withSource, type SourceRows, type Statement } from "../shared/postgres/statement.ts";
import { Catalog, type Column, type Table } from "../shared/postgres/table.ts";
import { upsertItems } from "../shared/postgres/upsert.ts";
import { runStatement, sourceOf } from "../shared/postgres/write.ts";
import {
  checkPoint,
  checkQuery,
  checkStoreOptions,
  given,
  storeOf,
  upsertDefaults,
  type VectorMatch,
  type VectorPoint,
  type VectorQuery,
  type VectorStore,
  type VectorStoreOptions,
} from "./store.ts";

export interface PgvectorOptions extends TableName, VectorStoreOptions {
  /**
   * Column of the id, with a primary key or unique index.
   * @default "id"
   */
  readonly id?: string | undefined;
  /**
   * Column of the vector, of type vector or halfvec.
   * @default "embedding"
   */
  readonly vector?: string | undefined;
}

/** Columns that must have these values; null matches NULL. */
export type ColumnFilter = Readonly<Record<string, unknown>>;

const operators = { cosine: "<=>", l2: "<->", dot: "<#>" } as const;

/**
 * A table with a pgvector column. A point's payload is the table's other columns. Upserts are those of
 * `sheaf/adapters/postgres`: a vector of the wrong length fails alone, with the server's word. Queries with the same filter
 * share one statement, in which each runs as its own `ORDER BY … LIMIT`, index included.
 */
export function pgvectorStore(client: PostgresClient, options: PgvectorOptions): VectorStore<ColumnFilter> {
  checkStoreOptions(options, "table", "schema", "id", "vector");
  const { table, schema, id = "id", vector = "embedding", metric = "cosine", upserts, queries } = options;
  const connection = connectionOf(client);
  const name = qualified({ table, schema });
  checkNames("id and vector", [id, vector], 2);
  const catalog = new Catalog(connection, name);

  const upsert = upsertItems<VectorPoint, void>(
    client,
    { ...upsertDefaults, ...given(upserts), table, schema, key: [id], returning: [] },
    (point) => {
      checkPoint(point);
      return { ...point.payload, [id]: point.id, [vector]: point.vector };
    },
    () => undefined,
  );

  const query = createBatcher<VectorQuery<ColumnFilter>, VectorMatch[]>(
    async (items, context) => {
      const filter = Object.entries(items[0]!.filter ?? {});
      const { table: read, columns } = await catalog.columns([vector, id, ...filter.map(([column]) => column)]);
      const matches: (VectorMatch[] | Error)[] = items.map(() => []);
      const asked = items.map((item) => [item.vector, item.limit ?? 10]);
      const { source, places } = sourceOf(
        asked,
        [columns[0]!, limitColumn],
        (place, error) => (matches[place] = error),
      );
      if (places.length === 0) return matches;
      const statement = nearestStatement(read, source, { id, vector, metric }, columns.slice(2), filter);
      for (const row of await runStatement(connection, catalog, statement, context)) {
        (matches[places[placeOf(row)]!] as VectorMatch[]).push(matchOf(row));
      }
      return matches;
    },
    {
      concurrency: connection.concurrency,
      onBatchError: "bisect",
      shouldBisect: isRowError,
      ...given(queries),
      name: `query ${table}`,
      groupKey: (item) => {
        checkQuery(item);
        return item.filter && JSON.stringify(Object.entries(item.filter).sort(([a], [b]) => (a < b ? -1 : 1)));
      },
    },
  );
  return storeOf({ metric, upsert, query });
}

const limitColumn: Column = {
  name: "limit",
  type: "pg_catalog.int4",
  declaredType: "integer",
  dimensions: undefined,
  encoding: { form: "text", isArray: false, dates: "utc", label: "limit" },
};

function nearestStatement(
  table: Table,
  source: SourceRows,
  { id, vector, metric }: { readonly id: string; readonly vector: string; readonly metric: keyof typeof operators },
  filterColumns: readonly Column[],
  filter: readonly (readonly [string, unknown])[],
): Statement {
  const distance = `target.${quoted(vector)} ${operators[metric]} source.c0`;
  const payload = [...table.columns.keys()].filter((column) => column !== id && column !== vector);
  const values: string[] = [];
  const conditions = filterColumns.map(({ type, encoding }, index) => {
    const [column, value] = filter[index]!;
    const text = encode(value, encoding);
    if (text === null) return `target.${quoted(column)} IS NULL`;
    values.push(text);
    return `target.${quoted(column)} = $${values.length + source.columns.length}::text::${type}`;
  });
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")} `;
  const columns = payload.map((column) => `, target.${quoted(column)}`).join("");
  const statement = withSource(
    source,
    "",
    `SELECT source."#", near.* FROM source CROSS JOIN LATERAL (SELECT target.${quoted(id)} AS "#id", ` +
      `${distance} AS "#distance"${columns} FROM ${table.name} AS target ${where}` +
      `ORDER BY ${distance} LIMIT source.c1) AS near ORDER BY source."#", near."#distance"`,
  );
  return { text: statement.text, values: [...statement.values, ...values] };
}

function matchOf({ [ordinal]: _, "#id": id, "#distance": distance, ...payload }: ResultRow): VectorMatch {
  return { id: id as string | number, distance: Number(distance), payload };
}
