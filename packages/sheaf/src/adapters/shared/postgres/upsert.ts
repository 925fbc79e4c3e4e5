import type { Batcher, Result } from "../../../core/contract/batcher.ts";
import { createBatcher } from "../../../core/create-batcher.ts";
import type { BatchContext } from "../../../core/contract/executor.ts";
import { connectionOf, type PostgresClient, type ResultRow } from "./client.ts";
import { checkNames, qualified } from "./identifier.ts";
import { keyOf } from "./key.ts";
import type { InsertOptions } from "./insert.ts";
import { batcherOptionsOf, checkOptionNames } from "./options.ts";
import { isRowError } from "./row-error.ts";
import { upsertStatement } from "./statement.ts";
import { Catalog } from "./table.ts";
import { columnsGivenBy, shapeOf, writeRows, type InputRow } from "./write.ts";

export interface UpsertOptions<Row, Returned> extends InsertOptions<Row, Returned> {
  /**
   * Columns of a unique index without a condition; every row gives them, and none is null. Required.
   * @example
   * upsertBatcher(pool, { table: "users", key: ["email"] });
   */
  readonly key: readonly string[];
  /**
   * Columns to overwrite in an existing row; `[]` leaves the row as it is.
   * @default the columns given beside the key
   */
  readonly update?: readonly string[] | undefined;
}

const upsertNames = ["table", "schema", "key", "update", "returning"] as const;

/**
 * As `insertBatcher`, with `ON CONFLICT (key) DO UPDATE`. One statement cannot touch a row twice: rows of one key go in
 * statements of their own, one after the other, in the order of the calls; also across batches. Within a statement rows
 * are sorted by key, so that two processes that write the same rows lock them in the same order.
 *
 * With `onBatchError: "fail"` a statement is atomic: rows that share one are all written, or none.
 */
export function upsertBatcher<Row extends object = InputRow, Returned extends object = ResultRow>(
  client: PostgresClient,
  options: UpsertOptions<Row, Returned>,
): Batcher<Row, Returned> {
  return upsertItems<Row, Returned>(
    client,
    options,
    (row) => row as InputRow,
    (returned) => returned as Returned,
  );
}

/** The same for items that are not rows: `rowOf` makes a row of one, and may throw, which fails that call only. */
export function upsertItems<In, Out>(
  client: PostgresClient,
  options: UpsertOptions<In, Out>,
  rowOf: (item: In) => InputRow,
  resultOf: (returned: ResultRow) => Out,
): Batcher<In, Result<Out>> {
  checkOptionNames(options, upsertNames);
  const { table, schema, key, update, returning = "*", overloadOrder = "arrival", ...rest } = options;
  const connection = connectionOf(client);
  const name = qualified({ table, schema });
  checkNames("key", key, 1);
  if (update !== undefined) checkNames("update", update, 0);
  if (returning !== "*") checkNames("returning", returning, 0);
  const catalog = new Catalog(connection, name);
  const settings = batcherOptionsOf(connection, `upsert into ${table}`, { ...rest, overloadOrder });

  const writeWave = async (wave: readonly Keyed[], context: BatchContext): Promise<(ResultRow | Error)[]> => {
    const given = columnsGivenBy(wave[0]!.row).filter((column) => !key.includes(column));
    const changed = update?.filter((column) => given.includes(column)) ?? given;
    const rows = wave.map(({ row }) => row);
    return writeRows(connection, catalog, rows, returning, context, (read, source) =>
      upsertStatement(read, source, key, changed, returning),
    );
  };

  /** A wave after the first: a statement has written already, so an error must not make the batch run again. */
  const writeLaterWave = async (wave: readonly Keyed[], context: BatchContext): Promise<(ResultRow | Error)[]> => {
    try {
      return await writeWave(wave, context);
    } catch (error) {
      if (wave.length === 1 || settings.onBatchError === "fail" || !isRowError(error)) {
        return wave.map(() => error as Error);
      }
      const results: (ResultRow | Error)[] = [];
      for (const one of wave) results.push(...(await writeLaterWave([one], context)));
      return results;
    }
  };

  return createBatcher<In, Out>(
    async (items, context) => {
      const [first, ...later] = waves(items.map(rowOf), key);
      const results: (ResultRow | Error)[] = [];
      const place = (wave: readonly Keyed[], written: readonly (ResultRow | Error)[]): void =>
        wave.forEach(({ index }, position) => (results[index] = written[position]!));
      place(first!, await writeWave(first!, context));
      for (const wave of later) place(wave, await writeLaterWave(wave, context));
      return results.map((result) => (result instanceof Error ? result : resultOf(result)));
    },
    { ...settings, groupKey: (item) => shapeOf(rowOf(item)), orderKey: (item) => keyOf(rowOf(item), key) },
  );
}

interface Keyed {
  readonly row: InputRow;
  readonly index: number;
  readonly key: string;
}

/** The first row of every key, then the second of those that have one …, each sorted by key. */
function waves(rows: readonly InputRow[], columns: readonly string[]): Keyed[][] {
  const result: Keyed[][] = [];
  const seen = new Map<string, number>();
  rows.forEach((row, index) => {
    const key = keyOf(row, columns);
    const wave = seen.get(key) ?? 0;
    seen.set(key, wave + 1);
    (result[wave] ??= []).push({ row, index, key });
  });
  for (const wave of result) wave.sort((a, b) => (a.key < b.key ? -1 : 1));
  return result;
}
