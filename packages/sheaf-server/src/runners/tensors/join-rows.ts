import type { NumberArray } from "./elements.ts";

/** Rows that stand back to back in one buffer, as a worker gets them, are one tensor already; others are copied. */
export function joinRows<Row extends NumberArray>(rows: readonly Row[]): Row {
  const [first] = rows;
  if (first === undefined) throw new RangeError("There is no row to join.");
  if (rows.length === 1) return first;
  const construct = first.constructor as new (
    source: number | ArrayBufferLike,
    offset?: number,
    length?: number,
  ) => Row;
  const total = rows.reduce((sum, row) => sum + row.length, 0);
  let expectedOffset = first.byteOffset;
  const isOneBlock = rows.every((row) => {
    const follows = row.buffer === first.buffer && row.byteOffset === expectedOffset;
    expectedOffset += row.byteLength;
    return follows;
  });
  if (isOneBlock) return new construct(first.buffer, first.byteOffset, total);
  const joined = new construct(total);
  let offset = 0;
  for (const row of rows) {
    (joined as Float32Array).set(row as Float32Array, offset);
    offset += row.length;
  }
  return joined;
}
