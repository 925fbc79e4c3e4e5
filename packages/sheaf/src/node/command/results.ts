import { BatcherError } from "../../core/contract/errors.ts";
import { describe } from "../../shared/describe.ts";
import type { RowOwnership } from "../wire/layout.ts";
import { columnText, lengthOf, typedArrayOf, type TensorColumn, type WorkerColumn } from "./declaration.ts";
import type { ColumnHead } from "./encode.ts";
import type { Frame } from "./frame.ts";
import { workerError } from "./worker-error.ts";

/** A `result` message whose columns lie within its payload. Their values are read later. */
export interface CheckedResult {
  readonly heads: readonly ColumnHead[];
  readonly errors: readonly { readonly index: number; readonly error: unknown }[];
  readonly payload: Uint8Array<ArrayBuffer>;
}

/** @throws {Error} that names the field that is wrong. */
export function checkResult(outputs: readonly WorkerColumn[], { header, payload }: Frame): CheckedResult {
  const { columns = [], errors = [] } = header;
  if (!Array.isArray(columns) || columns.length !== outputs.length) {
    throw new Error(`a result with ${describe(columns)} as columns; ${outputs.length} are declared`);
  }
  if (!Array.isArray(errors)) throw new Error(`a result with ${describe(errors)} as errors`);
  const heads = outputs.map((output) => {
    const head = (columns as (ColumnHead | null)[]).find((column) => column?.name === output.name);
    if (head === undefined || head === null) throw new Error(`a result without the column ${describe(output.name)}`);
    return checkColumn(output, head, payload);
  });
  const counts = new Set(heads.map(countOf));
  if (counts.size > 1) throw new Error(`columns of different lengths: ${[...counts].join(", ")}`);
  return { heads, errors: errors as CheckedResult["errors"], payload };
}

const countOf = ({ count, shape }: ColumnHead): number => shape?.[0] ?? count!;

/** How many values and errors it has. */
export const countResults = ({ heads, errors }: CheckedResult): number => countOf(heads[0]!) + errors.length;

function checkColumn(output: WorkerColumn, head: ColumnHead, payload: Uint8Array): ColumnHead {
  const { kind, at, bytes, count, dtype, shape } = head;
  const isCount = (value: unknown): boolean => Number.isInteger(value) && (value as number) >= 0;
  if (!isCount(at) || !isCount(bytes) || at + bytes > payload.byteLength) {
    throw new Error(`a column outside its payload of ${payload.byteLength} bytes`);
  }
  const declared = columnText(output);
  if (kind !== output.kind) throw new Error(`a column of ${describe(kind)} where ${declared} is declared`);
  if (output.kind !== "tensor") {
    if (!isCount(count)) throw new Error(`a column of ${kind} with ${describe(count)} as its count`);
    if (kind === "text" && (at % 4 !== 0 || bytes < 4 * (count! + 1)))
      throw new Error("a column of text without offsets");
    return head;
  }
  const rows = Array.isArray(shape) ? (shape[0] as number) : undefined;
  const got = Array.isArray(shape) ? `${dtype}[${shape.slice(1).join(",")}]` : describe(shape);
  if (!isCount(rows) || got !== declared) throw new Error(`a tensor of ${got} where ${declared} is declared`);
  const elementBytes = typedArrayOf[output.dtype].BYTES_PER_ELEMENT;
  if (at % elementBytes !== 0 || bytes !== rows! * lengthOf(output.shape) * elementBytes) {
    throw new Error(`a tensor of ${rows} × ${declared} in ${bytes} bytes at ${at}`);
  }
  return head;
}

/**
 * One value or `Error` for each of `size` items, in order. `places`: where they stand in their batch, if they are not all of it.
 * @throws {BatcherError} `RESULT_COUNT`: there are more or fewer. {Error} a column cannot be read.
 */
export function readResult(
  outputs: readonly WorkerColumn[],
  { heads, errors, payload }: CheckedResult,
  size: number,
  ownership: RowOwnership,
  places?: readonly number[],
): unknown[] {
  const columns = outputs.map((output, i) => readColumn(output, heads[i]!, payload, ownership));
  const values = outputs[0]!.name === undefined ? columns[0]! : recordsOf(outputs, columns);
  const failed = new Map<number, Error>();
  for (const { index, error } of errors) {
    const at = places === undefined ? index : places.indexOf(index);
    if (at >= 0 && at < size) failed.set(at, workerError(error));
  }
  const received = values.length + errors.length;
  if (received !== size || failed.size !== errors.length) {
    throw new BatcherError(
      "RESULT_COUNT",
      `the worker returned ${received} results for ${size} items. ` +
        "Return one result per item, in the order of the items; put an exception in the place of an item that failed.",
      { expected: size, received },
    );
  }
  if (failed.size === 0) return values;
  let next = 0;
  return Array.from({ length: size }, (_, index) => failed.get(index) ?? values[next++]);
}

function recordsOf(outputs: readonly WorkerColumn[], columns: readonly unknown[][]): unknown[] {
  return columns[0]!.map((_, i) => Object.fromEntries(outputs.map(({ name }, c) => [name, columns[c]![i]])));
}

function readColumn(
  output: WorkerColumn,
  { at, bytes, count, shape }: ColumnHead,
  payload: Uint8Array<ArrayBuffer>,
  ownership: RowOwnership,
): unknown[] {
  if (output.kind === "tensor") return readTensor(output, at, shape![0]!, payload.buffer, ownership);
  const column = Buffer.from(payload.buffer, at, bytes);
  if (output.kind === "text") return readTexts(column, count!);
  const values: unknown = JSON.parse(column.toString());
  if (Array.isArray(values) && values.length === count) return values;
  throw new Error(`the worker returned ${describe(values)} as a JSON column of ${count} values`);
}

function readTensor(
  { dtype, shape }: TensorColumn,
  at: number,
  count: number,
  buffer: ArrayBuffer,
  ownership: RowOwnership,
): unknown[] {
  const Elements = typedArrayOf[dtype];
  const length = lengthOf(shape);
  const rowBytes = length * Elements.BYTES_PER_ELEMENT;
  return Array.from({ length: count }, (_, i) => {
    const from = at + i * rowBytes;
    return ownership === "own"
      ? new Elements(buffer.slice(from, from + rowBytes), 0, length)
      : new Elements(buffer, from, length);
  });
}

function readTexts(column: Buffer, count: number): string[] {
  const start = 4 * (count + 1);
  const offsets = new Uint32Array(column.buffer, column.byteOffset, count + 1);
  return Array.from({ length: count }, (_, i) => {
    const [from, to] = [start + offsets[i]!, start + offsets[i + 1]!];
    if (from > to || to > column.byteLength) throw new Error("the worker returned a text outside its column");
    return column.toString("utf8", from, to);
  });
}
