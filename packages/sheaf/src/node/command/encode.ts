import { describe } from "../../shared/describe.ts";
import type { TypedArray } from "../../shared/element-types.ts";
import { largeRowBytes } from "../wire/layout.ts";
import { columnText, lengthOf, typedArrayOf, type TensorColumn, type WorkerColumn } from "./declaration.ts";

/** Columns begin at multiples of this many bytes of the payload. */
const alignment = 64;

export interface ColumnHead {
  readonly name?: string | undefined;
  readonly kind: WorkerColumn["kind"];
  readonly at: number;
  readonly bytes: number;
  readonly count?: number | undefined;
  readonly dtype?: string | undefined;
  readonly shape?: readonly number[] | undefined;
}

export interface EncodedItems {
  readonly columns: readonly ColumnHead[];
  /** The payload. Large rows are the caller's own memory. */
  readonly pieces: readonly Uint8Array[];
}

/**
 * Items as the columns that the worker declares.
 * @throws {TypeError} with `itemIndex`, for an item that is not of the worker's input type.
 */
export function encodeItems(columns: readonly WorkerColumn[], items: readonly unknown[]): EncodedItems {
  const heads: ColumnHead[] = [];
  const pieces: Uint8Array[] = [];
  let end = 0;
  for (const column of columns) {
    const values = column.name === undefined ? items : items.map((item, i) => valueOf(item, i, column));
    const encoded = encodeColumn(column, values);
    const padding = (alignment - (end % alignment)) % alignment;
    if (padding > 0) pieces.push(new Uint8Array(padding));
    const bytes = encoded.reduce((sum, { byteLength }) => sum + byteLength, 0);
    const { name, kind } = column;
    const at = end + padding;
    heads.push(
      kind === "tensor"
        ? { name, kind, at, bytes, dtype: column.dtype, shape: [values.length, ...column.shape] }
        : { name, kind, at, bytes, count: values.length },
    );
    pieces.push(...encoded);
    end = at + bytes;
  }
  return { columns: heads, pieces };
}

function valueOf(item: unknown, index: number, { name }: WorkerColumn): unknown {
  if (typeof item === "object" && item !== null && Object.hasOwn(item, name!)) {
    return (item as Record<string, unknown>)[name!];
  }
  throw wrongItem(index, `must be an object with ${describe(name)}`, item);
}

function encodeColumn(column: WorkerColumn, values: readonly unknown[]): Uint8Array[] {
  if (column.kind === "json") return [Buffer.from(JSON.stringify(values))];
  if (column.kind === "tensor") return encodeTensor(column, values);
  const wrong = values.findIndex((value) => typeof value !== "string");
  if (wrong >= 0) throw wrongItem(wrong, "must be a text", values[wrong], column);
  return encodeTexts(values as readonly string[]);
}

/** n + 1 offsets (u32), then the UTF-8 of all texts. */
function encodeTexts(texts: readonly string[]): Uint8Array[] {
  const joined = Buffer.from(texts.join(""));
  const offsets = new Uint32Array(texts.length + 1);
  // If all is ASCII, lengths in characters are lengths in bytes.
  const isAscii = joined.byteLength === texts.reduce((sum, { length }) => sum + length, 0);
  for (let i = 0; i < texts.length; i++) {
    const text = texts[i]!;
    offsets[i + 1] = offsets[i]! + (isAscii ? text.length : Buffer.byteLength(text));
  }
  // Joining texts may make a surrogate pair out of two halves.
  const blob =
    offsets[texts.length] === joined.byteLength ? joined : Buffer.concat(texts.map((text) => Buffer.from(text)));
  return [new Uint8Array(offsets.buffer), blob];
}

function encodeTensor(column: TensorColumn, values: readonly unknown[]): Uint8Array[] {
  const length = lengthOf(column.shape);
  const rows = values.map((value, i) => rowOf(value, i, column, length));
  const rowBytes = length * typedArrayOf[column.dtype].BYTES_PER_ELEMENT;
  if (rowBytes >= largeRowBytes) return rows.map(bytesOf);
  const block = new Uint8Array(rows.length * rowBytes);
  rows.forEach((row, i) => block.set(bytesOf(row), i * rowBytes));
  return [block];
}

function rowOf(value: unknown, index: number, column: TensorColumn, length: number): TypedArray {
  const Elements = typedArrayOf[column.dtype];
  if (value instanceof Elements && value.length === length) return value;
  if (Array.isArray(value)) {
    const numbers: unknown[] = value.flat(column.shape.length - 1);
    if (
      numbers.length === length &&
      numbers.every((number) => typeof number === "number" || typeof number === "bigint")
    ) {
      return column.dtype === "int64" || column.dtype === "uint64"
        ? (Elements as unknown as BigInt64ArrayConstructor).from(numbers.map((number) => BigInt(number as number)))
        : (Elements as unknown as Float32ArrayConstructor).from(numbers.map(Number));
    }
  }
  throw wrongItem(index, `must be a ${Elements.name} or an array of ${length} numbers`, value, column);
}

const bytesOf = ({ buffer, byteOffset, byteLength }: TypedArray): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

function wrongItem(itemIndex: number, expected: string, got: unknown, column?: WorkerColumn): TypeError {
  const where = column?.name === undefined ? "" : `.${column.name}`;
  const declared = column === undefined ? "" : ` (${columnText(column)})`;
  const message = `item ${itemIndex}${where} ${expected}${declared}, got ${describe(got)}`;
  return Object.assign(new TypeError(message), { itemIndex });
}
