import { arrayLiteral } from "./encode.ts";
import { quoted } from "./identifier.ts";
import type { Column, Table } from "./table.ts";

/** A statement and its parameters: one text for each column, whatever the number of rows. */
export interface Statement {
  readonly text: string;
  readonly values: string[];
}

/** Rows in columns: `texts[column][row]`, each in PostgreSQL's own text or null. */
export interface SourceRows {
  readonly columns: readonly Column[];
  readonly texts: readonly (readonly (string | null)[])[];
  readonly size: number;
}

/** Column of a result that says which row of the source it belongs to, from 1. No table is likely to have a "#". */
export const ordinal = "#";

/** The place of a row's source, from 0. A driver may be set up to read integers as BigInt or text. */
export const placeOf = (row: Readonly<Record<string, unknown>>): number => Number(row[ordinal]) - 1;

/** Columns to return; `"*"` is all of them, none runs the statement without RETURNING. */
export type Returning = readonly string[] | "*";

/**
 * Inserts rows and returns each with its ordinal. PostgreSQL 17 carries the ordinal through a MERGE that never matches.
 * Older versions cannot return a column of the source from an INSERT: there the source is ordered and the returned rows
 * are numbered as they were written, one after the other. Where a trigger skipped some of the rows the numbers would be
 * wrong, and the statement fails instead: written one by one they can be told apart.
 */
export function insertStatement(table: Table, source: SourceRows, returning: Returning): Statement {
  const names = namesOf(source.columns);
  const values = source.columns.map((_, index) => `source.c${index}`).join(", ");
  const isEmpty = source.columns.length === 0;
  if (returning.length === 0) {
    return withSource(source, "", `INSERT INTO ${table.name}${names} SELECT ${values} FROM source ORDER BY source."#"`);
  }
  if (table.canMerge) {
    const insert = isEmpty ? "INSERT DEFAULT VALUES" : `INSERT${names} VALUES (${values})`;
    return withSource(
      source,
      "",
      `MERGE INTO ${table.name} AS target USING source ON false WHEN NOT MATCHED THEN ${insert} ` +
        `RETURNING source."#", ${columnList("target", returning)}`,
    );
  }
  const complaint = `'Sheaf cannot tell whose row is whose: a trigger skipped rows of the batch and left '`;
  return withSource(
    source,
    `, written AS (INSERT INTO ${table.name} AS target${names} SELECT ${values} FROM source ORDER BY source."#" ` +
      `RETURNING ${columnList("target", returning)}), total AS (SELECT count(*) AS rows FROM written)`,
    `SELECT CASE WHEN total.rows = ${source.size} THEN (row_number() OVER ())::int4 ` +
      `ELSE (${complaint} || total.rows)::int4 END AS "#", written.* FROM written CROSS JOIN total`,
  );
}

/**
 * Inserts rows, or updates those whose key is there. Keys must be distinct and not null. A returned row finds its source by
 * the key, as stored: with the length and precision that the column gives it.
 */
export function upsertStatement(
  table: Table,
  source: SourceRows,
  key: readonly string[],
  update: readonly string[],
  returning: Returning,
): Statement {
  // Setting the key to its own value locks and returns the existing row; DO NOTHING would not.
  const changed = update.length > 0 ? update : key.slice(0, 1);
  const values = source.columns.map((_, index) => `source.c${index}`).join(", ");
  const upsert =
    `INSERT INTO ${table.name} AS target${namesOf(source.columns)} SELECT ${values} FROM source ORDER BY source."#" ` +
    `ON CONFLICT (${key.map(quoted).join(", ")}) DO UPDATE ` +
    `SET ${changed.map((name) => `${quoted(name)} = EXCLUDED.${quoted(name)}`).join(", ")}`;
  if (returning.length === 0) return withSource(source, "", upsert);
  const keys = key.map((name, index) => `target.${quoted(name)} AS "#${index}"`).join(", ");
  const sameKey = key.map((name, index) => {
    const position = source.columns.findIndex((column) => column.name === name);
    return `written."#${index}" = source.c${position}::${source.columns[position]!.declaredType}`;
  });
  const returned = returning === "*" ? [...table.columns.keys()] : returning;
  return withSource(
    source,
    `, written AS (${upsert} RETURNING ${columnList("target", returning)}, ${keys})`,
    `SELECT source."#", ${columnList("written", returned)} FROM written JOIN source ON ${sameKey.join(" AND ")}`,
  );
}

/**
 * The rows that have one of the keys, each with its key's ordinal; `source` holds the keys. Sorted, so that a key that
 * cannot be read fails the statement before the first row is sent: postgres.js 3.4 leaves holes in the next result of a
 * connection where one failed half-way (porsager/postgres#1181).
 */
export function lookupStatement(table: Table, source: SourceRows, returning: Returning): Statement {
  const sameKey = source.columns.map(({ name }, index) => `target.${quoted(name)} = source.c${index}`);
  return withSource(
    source,
    "",
    `SELECT source."#", ${columnList("target", returning)} FROM source JOIN ${table.name} AS target ` +
      `ON ${sameKey.join(" AND ")} ORDER BY source."#"`,
  );
}

/**
 * `WITH source AS (…)`, the rows as a relation of columns c0, c1 … and their ordinal. Every column is one array of texts,
 * sent as text and cast by the server: the number of parameters does not depend on the number of rows, and no driver
 * writes a value in a way of its own.
 */
export function withSource({ columns, texts, size }: SourceRows, more: string, statement: string): Statement {
  const values =
    columns.length === 0 ? [arrayLiteral(Array.from({ length: size }, () => null))] : texts.map(arrayLiteral);
  const parameters = values.map((_, index) => `$${index + 1}::text::text[]`).join(", ");
  const aliases = values.map((_, index) => `c${index}`).join(", ");
  const typed = columns.map(({ type }, index) => `, s.c${index}::${type} AS c${index}`).join("");
  return {
    text:
      `WITH source AS MATERIALIZED (SELECT s.o::int4 AS "#"${typed} FROM unnest(${parameters}) WITH ORDINALITY ` +
      `AS s(${aliases}, o))${more} ${statement}`,
    values,
  };
}

const namesOf = (columns: readonly Column[]): string =>
  columns.length === 0 ? "" : ` (${columns.map(({ name }) => quoted(name)).join(", ")})`;

const columnList = (relation: string, returning: Returning): string =>
  returning === "*" ? `${relation}.*` : returning.map((name) => `${relation}.${quoted(name)}`).join(", ");
