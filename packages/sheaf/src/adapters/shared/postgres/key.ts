/**
 * One text for equal keys. Values that the database alone holds for equal (the case of a uuid, of citext) have different
 * texts, and the database reports it.
 * @throws {TypeError} a column that is not given or null.
 */
export function keyOf(row: Readonly<Record<string, unknown>>, columns: readonly string[]): string {
  if (columns.length === 1) return textOf(row[columns[0]!], columns[0]!);
  return JSON.stringify(columns.map((column) => textOf(row[column], column)));
}

function textOf(value: unknown, column: string): string {
  if (value === null || value === undefined) {
    throw new TypeError(`the key column "${column}" must have a value, got ${String(value)}`);
  }
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
  return value instanceof Date ? value.toISOString() : (value as { toString: () => string }).toString();
}
