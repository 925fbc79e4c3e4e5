/** `users` → `"users"`; quotes inside are doubled. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A table by name and, outside the search path, schema; both as they stand in the catalog, without quotes. */
export interface TableName {
  readonly table: string;
  /** Default: found through the connection's search_path. */
  readonly schema?: string | undefined;
}

/** @throws {TypeError} a name that can not be one. */
export function qualified({ schema, table }: TableName): string {
  checkName("table", table);
  if (schema === undefined) return quoted(table);
  checkName("schema", schema);
  return `${quoted(schema)}.${quoted(table)}`;
}

/** @throws {TypeError} */
export function checkNames(option: string, names: unknown, fewest: number): asserts names is readonly string[] {
  if (!Array.isArray(names) || names.length < fewest) {
    throw new TypeError(`${option} must be an array of at least ${fewest} column names, got ${JSON.stringify(names)}`);
  }
  for (const name of names) checkName(option, name);
}

function checkName(option: string, name: unknown): void {
  if (typeof name !== "string" || name === "" || name.includes("\0")) {
    throw new TypeError(`${option} must be a non-empty name, got ${JSON.stringify(name)}`);
  }
}
