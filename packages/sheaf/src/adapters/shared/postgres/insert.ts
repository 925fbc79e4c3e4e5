import type { Batcher } from "../../../core/contract/batcher.ts";
import { createBatcher } from "../../../core/create-batcher.ts";
import { connectionOf, type PostgresClient, type ResultRow } from "./client.ts";
import { checkNames, qualified, type TableName } from "./identifier.ts";
import { batcherOptionsOf, checkOptionNames, type DatabaseBatcherOptions } from "./options.ts";
import { insertStatement, type Returning } from "./statement.ts";
import { Catalog } from "./table.ts";
import { shapeOf, writeRows, type InputRow } from "./write.ts";

export interface InsertOptions<Row, Returned>
  extends TableName, Omit<DatabaseBatcherOptions<Row, Returned>, "overloadOrder"> {
  /**
   * Columns of the row that each caller gets back: `"*"` is all, `[]` gives `{}` and spares RETURNING.
   * @default "*"
   * @example
   * insertBatcher(pool, { table: "users", returning: ["id"] });
   */
  readonly returning?: Returning | undefined;
  /**
   * Under standing overload `"arrival"` still writes the oldest rows first, `"newest"` the newest.
   * @default "arrival"
   * @see BatcherOptions.overloadOrder
   */
  readonly overloadOrder?: "newest" | "arrival" | undefined;
}

const insertNames = ["table", "schema", "returning"] as const;

/**
 * Single-row inserts that share statements: `INSERT … SELECT … FROM unnest(…)`, with one parameter for each column.
 * Column types are read from the catalog once. Each caller gets its own row as stored, or its own error.
 *
 * A row is sent again only after the server said that the statement which held it wrote nothing (see `isRowError`): a row
 * is written at most once. Where a connection is lost, its callers get that error and the outcome is unknown.
 * `onBatchError: "fail"` makes a batch atomic: all its rows are written, or none.
 * @throws {TypeError | RangeError} for a wrong client or option; the message quotes it.
 */
export function insertBatcher<Row extends object = InputRow, Returned extends object = ResultRow>(
  client: PostgresClient,
  options: InsertOptions<Row, Returned>,
): Batcher<Row, Returned> {
  checkOptionNames(options, insertNames);
  const { table, schema, returning = "*", overloadOrder = "arrival", ...rest } = options;
  const connection = connectionOf(client);
  const name = qualified({ table, schema });
  if (returning !== "*") checkNames("returning", returning, 0);
  const catalog = new Catalog(connection, name);
  return createBatcher<Row, Returned>(
    async (rows, context) =>
      (await writeRows(connection, catalog, rows as readonly InputRow[], returning, context, (read, source) =>
        insertStatement(read, source, returning),
      )) as (Returned | Error)[],
    { ...batcherOptionsOf(connection, `insert into ${table}`, { ...rest, overloadOrder }), groupKey: shapeOf },
  );
}
