import { describe } from "../../../shared/describe.ts";
import type { BatchContext } from "../../../core/contract/executor.ts";
import type { Connection, ResultRow } from "./client.ts";
import { encode } from "./encode.ts";
import { ordinal, placeOf, type Returning, type SourceRows, type Statement } from "./statement.ts";
import type { Catalog, Column, Table } from "./table.ts";

/** A value for each column; a column that is left out, or undefined, gets its default. */
export type InputRow = Readonly<Record<string, unknown>>;

/** The columns that a row gives. @throws {TypeError} when it is not an object. */
export function columnsGivenBy(row: unknown): string[] {
  if (typeof row !== "object" || row === null || Array.isArray(row)) {
    throw new TypeError(`a row must be an object of column names and values, got ${describe(row)}`);
  }
  return Object.keys(row)
    .filter((name) => (row as InputRow)[name] !== undefined)
    .sort();
}

/** Rows that give different columns do not share a statement: a missing column would be NULL, not its default. */
export const shapeOf = (row: unknown): string => JSON.stringify(columnsGivenBy(row));

/** Writes rows of one shape in one statement, and gives each its own returned row or its own error. */
export async function writeRows(
  connection: Connection,
  catalog: Catalog,
  rows: readonly InputRow[],
  returning: Returning,
  context: BatchContext,
  statementOf: (table: Table, source: SourceRows) => Statement,
): Promise<(ResultRow | Error)[]> {
  const names = columnsGivenBy(rows[0]);
  const { table, columns } = await catalog.columns(names);
  const results: (ResultRow | Error)[] = [];
  const values = rows.map((row) => names.map((name) => row[name]));
  const { source, places } = sourceOf(values, columns, (place, error) => (results[place] = error));
  if (places.length === 0) return results;
  const returned = await runStatement(connection, catalog, statementOf(table, source), context);
  for (const place of places) results[place] = returning.length === 0 ? {} : noRow(table);
  for (const numbered of returned) {
    const { [ordinal]: _, ...row } = numbered;
    results[places[placeOf(numbered)]!] = row;
  }
  return results;
}

/** Rows as the source of a statement. Rows that cannot be encoded are left out; `places` are the indices of the rest. */
export function sourceOf(
  rows: readonly (readonly unknown[])[],
  columns: readonly Column[],
  refuse: (place: number, error: Error) => void,
): { readonly source: SourceRows; readonly places: number[] } {
  const texts: (string | null)[][] = columns.map(() => []);
  const places: number[] = [];
  rows.forEach((row, place) => {
    try {
      const encoded = columns.map(({ encoding }, index) => encode(row[index], encoding));
      encoded.forEach((text, index) => texts[index]!.push(text));
      places.push(place);
    } catch (error) {
      refuse(place, error as Error);
    }
  });
  return { source: { columns, texts, size: places.length }, places };
}

export async function runStatement(
  connection: Connection,
  catalog: Catalog,
  { text, values }: Statement,
  context: BatchContext,
): Promise<readonly ResultRow[]> {
  try {
    return await connection.run(text, values, context);
  } catch (error) {
    // Class 42: the table has changed since its columns were read.
    if (String((error as { code?: unknown } | null)?.code).startsWith("42")) catalog.forget();
    throw error;
  }
}

const noRow = (table: Table): Error =>
  new Error(
    `${table.name} returned no row for this item: a trigger skipped it or changed its key. ` +
      "With `returning: []` no row is expected.",
  );
