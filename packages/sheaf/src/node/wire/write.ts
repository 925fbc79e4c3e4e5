import { typedArrays, type TypedArray } from "../../shared/element-types.ts";
import { constants } from "node:buffer";
import { serialize } from "node:v8";
import { isNativeError } from "node:util/types";
import { describeError } from "../../core/contract/wire-error.ts";
import { encodeRows, type RowEncoder } from "./encoded-rows.ts";
import {
  arrayBufferKind,
  bytesPerElement,
  encodedRows,
  float32Kind,
  headerBytes,
  kindOfPrototype,
  largeRowBytes,
  padded,
  Tag,
  uniformRows,
  uninitialised,
} from "./layout.ts";

// Lists up to this size are written into a reused buffer and copied out in one go: cheaper than new views.
export const scratchBytes: number = 64 * 1024;

const maxColumns = 64;
const maxDepth = 3;

export interface Writer {
  readonly buffer: ArrayBuffer;
  readonly bytes: Buffer;
  readonly words: Uint32Array;
  at: number;
  large: Uint8Array[];
}

export function writerOf(buffer: ArrayBuffer): Writer {
  return { buffer, bytes: Buffer.from(buffer), words: new Uint32Array(buffer), at: 0, large: [] };
}

let scratch: Writer | undefined;

export function scratchWriter(): Writer {
  scratch ??= writerOf(uninitialised(scratchBytes));
  scratch.large = [];
  return scratch;
}

/** A column that knows its size, header and padding included, before anything is written. */
export interface Column {
  readonly bytes: number;
  write(writer: Writer): void;
}

/** With an `encoder`, float32 rows travel with their encodings. */
export function planSlots(values: ArrayLike<unknown>, encoder?: RowEncoder): Column {
  const errorAt: number[] = [];
  for (let i = 0; i < values.length; i++) if (isError(values[i])) errorAt.push(i);
  if (errorAt.length === 0) return planColumn(values, 0, encoder);

  const rest = Array.from(values).filter((value) => !isError(value));
  const errors = planClone(errorAt.map((i) => describeError(values[i])));
  const others = planColumn(rest, 0, encoder);
  return {
    bytes: headerBytes + padded(errorAt.length * 4) + errors.bytes + others.bytes,
    write(writer) {
      writeHeader(writer, Tag.slots, 0, 0, errorAt.length);
      writeWords(writer, errorAt);
      errors.write(writer);
      others.write(writer);
    },
  };
}

export const isError = (value: unknown): boolean =>
  typeof value === "object" && value !== null && looksLikeError(value);
// Most results are rows; the check for an error of another realm is a call into native code.
const looksLikeError = (value: object): boolean =>
  !ArrayBuffer.isView(value) && (value instanceof Error || isNativeError(value));

function planColumn(values: ArrayLike<unknown>, depth: number, encoder: RowEncoder | undefined): Column {
  const first = values[0];
  switch (typeof first) {
    case "string":
      return every(values, "string") ? planText(values as ArrayLike<string>) : planClone(values);
    case "number":
      return every(values, "number") ? planNumbers(values as ArrayLike<number>) : planClone(values);
    case "boolean":
      return every(values, "boolean") ? planBooleans(values as ArrayLike<boolean>) : planClone(values);
    case "object":
      if (first === null) return planClone(values);
      return planRows(values, first, encoder) ?? planRecord(values, first, depth, encoder) ?? planClone(values);
    default:
      return planClone(values);
  }
}

function every(values: ArrayLike<unknown>, type: "string" | "number" | "boolean"): boolean {
  for (let i = 1; i < values.length; i++) if (typeof values[i] !== type) return false;
  return true;
}

// ASCII as one byte a character, anything else as UTF-16: both are plain copies, and a lone surrogate survives, which
// UTF-8 would replace.
function planText(values: ArrayLike<string>): Column {
  const texts = Array.isArray(values) ? (values as string[]) : Array.from(values);
  const joined = joinedTexts(texts);
  const ascii = Buffer.byteLength(joined, "utf8") === joined.length;
  const textBytes = ascii ? joined.length : joined.length * 2;
  return {
    bytes: headerBytes + padded(texts.length * 4) + padded(textBytes),
    write(writer) {
      writeHeader(writer, Tag.text, ascii ? 0 : 1, 0, joined.length);
      const from = writer.at / 4;
      for (let i = 0; i < texts.length; i++) writer.words[from + i] = (texts[i] as string).length;
      writer.at += padded(texts.length * 4);
      writer.bytes.write(joined, writer.at, ascii ? "latin1" : "utf16le");
      writer.at += padded(textBytes);
    },
  };
}

/** A string holds half a Gi of characters at most. */
function joinedTexts(texts: readonly string[]): string {
  try {
    return texts.join("");
  } catch {
    const characters = texts.reduce((sum, text) => sum + text.length, 0);
    throw tooLarge(texts.length, `${characters} characters`, `${constants.MAX_STRING_LENGTH}`);
  }
}

export const tooLarge = (count: number, got: string, most: string): RangeError =>
  new RangeError(
    `${count} values of ${got} together are too large for one message to or from a worker (${most} at most). ` +
      "Lower maxBatchSize, or bound batches by their size with weigh and maxBatchWeight.",
  );

function planNumbers(values: ArrayLike<number>): Column {
  return {
    bytes: headerBytes + values.length * 8,
    write(writer) {
      writeHeader(writer, Tag.number, 0, 0, 0);
      new Float64Array(writer.buffer, writer.at, values.length).set(values);
      writer.at += values.length * 8;
    },
  };
}

function planBooleans(values: ArrayLike<boolean>): Column {
  return {
    bytes: headerBytes + padded(values.length),
    write(writer) {
      writeHeader(writer, Tag.boolean, 0, 0, 0);
      for (let i = 0; i < values.length; i++) writer.bytes[writer.at + i] = values[i] ? 1 : 0;
      writer.at += padded(values.length);
    },
  };
}

function planRows(values: ArrayLike<unknown>, first: object, encoder: RowEncoder | undefined): Column | undefined {
  const prototype: unknown = Object.getPrototypeOf(first);
  const kind = kindOfPrototype.get(prototype);
  if (kind === undefined) return undefined;
  const elementBytes = bytesPerElement(kind);
  const lengths: number[] = [];
  let smallBytes = 0;
  let uniform = true;
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== prototype) return undefined;
    // An object that only claims the prototype (Object.create(Float32Array.prototype)) holds no bytes.
    if (!ArrayBuffer.isView(value) && !(value instanceof ArrayBuffer)) return undefined;
    const { byteLength } = value;
    lengths.push(byteLength / elementBytes);
    if (lengths[i] !== lengths[0]) uniform = false;
    if (byteLength < largeRowBytes) smallBytes += byteLength;
  }
  const encoded =
    encoder === undefined || kind !== float32Kind ? undefined : encodeRows(values as ArrayLike<Float32Array>, encoder);
  return {
    bytes: headerBytes + (uniform ? 0 : padded(lengths.length * 4)) + padded(smallBytes) + (encoded?.bytes ?? 0),
    write(writer) {
      writeHeader(writer, Tag.rows, kind, (uniform ? uniformRows : 0) | (encoded ? encodedRows : 0), lengths[0] ?? 0);
      if (!uniform) writeWords(writer, lengths);
      writeRows(writer, values as ArrayLike<TypedArray | ArrayBuffer>, kind, smallBytes / elementBytes);
      writer.at += padded(smallBytes);
      if (encoded === undefined) return;
      writeWords(writer, encoded.lengths);
      writer.bytes.set(encoded.text, writer.at);
      writer.at += padded(encoded.text.length);
    },
  };
}

/**
 * Rows that stand back to back in one buffer, as cut from one tensor, are copied as one. For the others one view over the
 * place of all small rows: `set` then copies each without a view of its own.
 */
function writeRows(
  writer: Writer,
  rows: ArrayLike<TypedArray | ArrayBuffer>,
  kind: number,
  smallElements: number,
): void {
  const Elements = typedArrays[kind] ?? Uint8Array;
  const place = new Elements(writer.buffer, writer.at, smallElements) as unknown as Uint8Array;
  if (isOneBlock(rows, kind)) {
    const { buffer, byteOffset } = rows[0] as TypedArray;
    place.set(new Elements(buffer as ArrayBuffer, byteOffset, smallElements) as unknown as Uint8Array);
    return;
  }
  let at = 0;
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i] as Uint8Array | ArrayBuffer;
    if (row.byteLength >= largeRowBytes) {
      writer.large.push(bytesOf(row));
    } else {
      const elements = row instanceof ArrayBuffer ? new Uint8Array(row) : row;
      place.set(elements, at);
      at += elements.length;
    }
  }
}

// The engine stores short arrays without a buffer until it is read: reading it would cost more than it saves.
const fewestBlockBytes = 128;

function isOneBlock(rows: ArrayLike<TypedArray | ArrayBuffer>, kind: number): boolean {
  if (kind === arrayBufferKind || rows.length < 2) return false;
  const { byteLength } = rows[0] as TypedArray;
  if (byteLength < fewestBlockBytes || byteLength >= largeRowBytes) return false;
  const { buffer, byteOffset } = rows[0] as TypedArray;
  let nextOffset = byteOffset + byteLength;
  for (let i = 1; i < rows.length; i++) {
    const row = rows[i] as TypedArray;
    if (row.byteOffset !== nextOffset || row.byteLength >= largeRowBytes || row.buffer !== buffer) return false;
    nextOffset += row.byteLength;
  }
  return true;
}

const bytesOf = (row: TypedArray | ArrayBuffer): Uint8Array =>
  row instanceof ArrayBuffer ? new Uint8Array(row) : new Uint8Array(row.buffer, row.byteOffset, row.byteLength);

/** Plain objects with the same keys in the same order: one column a key. */
function planRecord(
  values: ArrayLike<unknown>,
  first: object,
  depth: number,
  encoder: RowEncoder | undefined,
): Column | undefined {
  if (depth >= maxDepth || Object.getPrototypeOf(first) !== Object.prototype) return undefined;
  const keys = Object.keys(first);
  if (keys.length === 0 || keys.length > maxColumns || keys.includes("__proto__")) return undefined;
  const cells: unknown[][] = keys.map(() => []);
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (!isRecordWith(keys, value)) return undefined;
    for (let k = 0; k < keys.length; k++) (cells[k] as unknown[]).push(value[keys[k] as string]);
  }
  const names = planText(keys);
  // An error inside a record travels in columns of its own.
  const columns = cells.map((column) =>
    column.some(isError) ? planClone(column) : planColumn(column, depth + 1, encoder),
  );
  return {
    bytes: columns.reduce((sum, column) => sum + column.bytes, headerBytes + names.bytes),
    write(writer) {
      writeHeader(writer, Tag.record, 0, 0, keys.length);
      names.write(writer);
      for (const column of columns) column.write(writer);
    },
  };
}

function isRecordWith(keys: readonly string[], value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return false;
  const own = Object.keys(value);
  return own.length === keys.length && own.every((key, k) => key === keys[k]);
}

function planClone(values: ArrayLike<unknown>): Column {
  const cloned = serialize(Array.from(values));
  return {
    bytes: headerBytes + padded(cloned.byteLength),
    write(writer) {
      writeHeader(writer, Tag.clone, 0, 0, cloned.byteLength);
      writer.bytes.set(cloned, writer.at);
      writer.at += padded(cloned.byteLength);
    },
  };
}

function writeHeader(writer: Writer, tag: number, kind: number, flag: number, number: number): void {
  writer.words[writer.at / 4] = tag | (kind << 8) | (flag << 16);
  writer.words[writer.at / 4 + 1] = number;
  writer.at += headerBytes;
}

function writeWords(writer: Writer, numbers: readonly number[]): void {
  writer.words.set(numbers, writer.at / 4);
  writer.at += padded(numbers.length * 4);
}
