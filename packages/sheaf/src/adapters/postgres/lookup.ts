import type { Batcher } from "../../core/contract/batcher.ts";
import { createBatcher } from "../../core/create-batcher.ts";
import { oneOf } from "../../shared/checks.ts";
import { connectionOf, type PostgresClient, type ResultRow } from "../shared/postgres/client.ts";
import { checkNames, qualified, type TableName } from "../shared/postgres/identifier.ts";
import { keyOf } from "../shared/postgres/key.ts";
import { batcherOptionsOf, checkOptionNames, type DatabaseBatcherOptions } from "../shared/postgres/options.ts";
import { lookupStatement, ordinal, placeOf, type Returning } from "../shared/postgres/statement.ts";
import { Catalog } from "../shared/postgres/table.ts";
import { runStatement, sourceOf } from "../shared/postgres/write.ts";

export interface LookupOptions<Key, Row> extends TableName, DatabaseBatcherOptions<Key, Row> {
  /** A column, whose value is the item; or several, and the item is an object of their values. Required. */
  readonly key: string | readonly string[];
  /**
   * Columns of the rows; `"*"` is all.
   * @default "*"
   */
  readonly columns?: Returning | undefined;
  /**
   * `"one"`: the row, or undefined when there is none. `"all"`: an array of every row that has the key.
   * @default "one"
   */
  readonly rows?: "one" | "all" | undefined;
}

const lookupNames = ["table", "schema", "key", "columns", "rows"] as const;

export type Found<Row, Rows> = Rows extends "all" ? Row[] : Row | undefined;

/**
 * Lookups by key that share a `SELECT … JOIN unnest(…)`. Equal keys that wait share one item and get the same object. A
 * key that the column's type cannot read fails alone. With `rows: "one"`, a key that several rows have is an error.
 */
export function lookupBatcher<Key = unknown, Row extends object = ResultRow, Rows extends "one" | "all" = "one">(
  client: PostgresClient,
  options: LookupOptions<Key, Found<Row, Rows>> & { readonly rows?: Rows | undefined },
): Batcher<Key, Found<Row, Rows>> {
  checkOptionNames(options, lookupNames);
  const { table, schema, key, columns = "*", rows: expected = "one", ...rest } = options;
  const connection = connectionOf(client);
  const name = qualified({ table, schema });
  const keyColumns = typeof key === "string" ? [key] : key;
  checkNames("key", keyColumns, 1);
  if (columns !== "*") checkNames("columns", columns, 1);
  oneOf("one", "all")("rows", expected);
  const catalog = new Catalog(connection, name);
  const partsOf = (item: unknown): Record<string, unknown> =>
    typeof key === "string" ? { [key]: item } : (item as Record<string, unknown>);

  return createBatcher<Key, unknown>(
    async (items, context) => {
      const { table: read, columns: typed } = await catalog.columns(keyColumns);
      const found = new Map<unknown, unknown>(expected === "all" ? items.map((item) => [item, []]) : []);
      const keys = items.map((item) => keyColumns.map((column) => partsOf(item)[column]));
      const { source, places } = sourceOf(keys, typed, (place, error) => found.set(items[place], error));
      if (places.length === 0) return found;
      const rows = await runStatement(connection, catalog, lookupStatement(read, source, columns), context);
      for (const numbered of rows) {
        const { [ordinal]: _, ...row } = numbered;
        const item = items[places[placeOf(numbered)]!];
        if (expected === "all") (found.get(item) as unknown[]).push(row);
        else if (!found.has(item)) found.set(item, row);
        else found.set(item, new Error(`${name} has several rows for this key; \`rows: "all"\` returns them all.`));
      }
      return found;
    },
    {
      ...batcherOptionsOf<Key, unknown>(connection, `look up ${table}`, rest),
      dedupeKey: (item) => keyOf(partsOf(item), keyColumns),
    },
  ) as unknown as Batcher<Key, Found<Row, Rows>>;
}
