import { check } from "../../../shared/checks.ts";

/** `users` → `"users"`; quotes inside are doubled. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A table by name and, outside the search path, schema; both as in the catalog, without quotes. */
export interface TableName {
  /** The table's name as the catalog has it, unquoted. Required. */
  readonly table: string;
  /**
   * The table's schema as the catalog has it, unquoted.
   * @default found through the connection's `search_path`
   */
  readonly schema?: string | undefined;
}

/** @throws {TypeError} a name that cannot be one. */
export function qualified({ schema, table }: TableName): string {
  checkName("table", table);
  if (schema === undefined) return quoted(table);
  checkName("schema", schema);
  return `${quoted(schema)}.${quoted(table)}`;
}

/** @throws {TypeError} */
export function checkNames(option: string, names: unknown, fewest: number): asserts names is readonly string[] {
  const isList = Array.isArray(names) && names.length >= fewest;
  check(isList, option, `an array of at least ${fewest} column names`, names, TypeError);
  for (const name of names as unknown[]) checkName(option, name);
}

function checkName(option: string, name: unknown): void {
  const isName = typeof name === "string" && name !== "" && !name.includes("\0");
  check(isName, option, "a non-empty name", name, TypeError);
}
