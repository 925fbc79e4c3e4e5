import type { Connection } from "./client.ts";
import type { Encoding } from "./encode.ts";

/** One column as the catalog has it. */
export interface Column {
  readonly name: string;
  /** Its type without length or precision, quoted: an explicit cast to `varchar(3)` would cut silently. */
  readonly type: string;
  /** With length and precision, as values are stored. */
  readonly declaredType: string;
  /** Length of a `vector(n)`; undefined for a type without one. */
  readonly dimensions: number | undefined;
  readonly encoding: Encoding;
}

/** A table as the catalog describes it. */
export interface Table {
  /** Quoted, with its schema where one was given. */
  readonly name: string;
  readonly columns: ReadonlyMap<string, Column>;
  /** PostgreSQL 17 and newer can return the source's ordinal from a MERGE; not for views, foreign tables and tables with rules. */
  readonly canMerge: boolean;
}

/** Reads a table's columns once, and again when asked for one that it does not know. */
export class Catalog {
  readonly #connection: Connection;
  readonly #name: string;
  #table: Promise<Table> | undefined;

  constructor(connection: Connection, name: string) {
    this.#connection = connection;
    this.#name = name;
  }

  /**
   * The table and the named columns in their order.
   * @throws {TypeError} a column that the table does not have. The database's error when there is no such table.
   */
  async columns(names: readonly string[]): Promise<{ readonly table: Table; readonly columns: Column[] }> {
    let table = await this.#read();
    if (names.some((name) => !table.columns.has(name))) {
      this.forget();
      table = await this.#read();
    }
    const columns = names.map((name) => {
      const column = table.columns.get(name);
      if (column !== undefined) return column;
      throw new TypeError(`${this.#name} has no column "${name}"; it has ${[...table.columns.keys()].join(", ")}`);
    });
    return { table, columns };
  }

  /** The table may have changed. */
  forget(): void {
    this.#table = undefined;
  }

  #read(): Promise<Table> {
    if (this.#table !== undefined) return this.#table;
    const reading = readTable(this.#connection, this.#name);
    this.#table = reading;
    reading.catch(() => {
      if (this.#table === reading) this.#table = undefined;
    });
    return reading;
  }
}

// Follows domains to their base and arrays to their element, so that a domain over jsonb[] is known as an array of jsonb.
const query = `
WITH RECURSIVE types AS (
  SELECT a.attnum, t.oid, t.typname, t.typtype, t.typbasetype, t.typcategory, t.typelem, 0 AS depth
  FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
  WHERE a.attrelid = $1::text::regclass AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT s.attnum, t.oid, t.typname, t.typtype, t.typbasetype, t.typcategory, t.typelem, s.depth + 1
  FROM types s JOIN pg_type t
    ON t.oid = CASE WHEN s.typtype = 'd' THEN s.typbasetype WHEN s.typcategory = 'A' THEN s.typelem END
)
SELECT a.attname::text AS name,
  quote_ident(n.nspname) || '.' || quote_ident(t.typname) AS type,
  format_type(a.atttypid, a.atttypmod) AS declared,
  a.atttypmod::int4 AS modifier,
  (SELECT s.typname::text FROM types s WHERE s.attnum = a.attnum ORDER BY s.depth DESC LIMIT 1) AS leaf,
  (SELECT bool_or(s.typcategory = 'A') FROM types s WHERE s.attnum = a.attnum) AS listed,
  c.relkind IN ('r', 'p') AND NOT c.relhasrules AS plain,
  current_setting('server_version_num')::int4 AS version
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE a.attrelid = $1::text::regclass AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum`;

async function readTable(connection: Connection, name: string): Promise<Table> {
  const rows = (await connection.run(query, [name])) as unknown as {
    readonly name: string;
    readonly type: string;
    readonly declared: string;
    readonly modifier: number;
    readonly leaf: string;
    readonly listed: boolean;
    readonly plain: boolean;
    readonly version: number;
  }[];
  const columns = rows.map((row): Column => {
    const form = formOf(row.leaf);
    return {
      name: row.name,
      type: row.type,
      declaredType: row.declared,
      dimensions: form === "vector" && row.modifier > 0 ? row.modifier : undefined,
      encoding: { form, isArray: row.listed, dates: connection.dates, label: `"${row.name}" (${row.declared})` },
    };
  });
  return {
    name,
    columns: new Map(columns.map((column) => [column.name, column])),
    canMerge: rows.some(({ version, plain }) => version >= 170_000 && plain),
  };
}

function formOf(leaf: string): Encoding["form"] {
  if (leaf === "json" || leaf === "jsonb") return "json";
  if (leaf === "bytea") return "bytes";
  return leaf === "vector" || leaf === "halfvec" ? "vector" : "text";
}
