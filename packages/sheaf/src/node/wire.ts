import { deserialize, serialize } from "node:v8";
import { isNativeError } from "node:util/types";
import { describeError, rebuildError, type ErrorDescription } from "./wire-error.ts";

/**
 * One list of values as bytes: one buffer that holds everything small, column by column, and one buffer each for rows of
 * `largeRowBytes` and up. A worker message then carries a handful of transferred buffers instead of a tree of objects.
 *
 * Each column starts at a multiple of 8 with a header of 8 bytes: tag u8, kind u8, flag u16, number u32. Rows of typed
 * arrays of one kind stand back to back, so that equal rows read as one tensor. Numbers are in the machine's own order:
 * both ends are on one machine.
 */
export interface Packed {
  readonly buffer: ArrayBuffer;
  /** Rows with a buffer of their own, in order. From `pack` they are the caller's own memory: copy before transfer. */
  readonly large: readonly Uint8Array[];
}

/** Rows this big travel in a buffer of their own: copied once, and nobody's result keeps another's memory alive. */
export const largeRowBytes: number = 64 * 1024;

/**
 * How rows come out. `"view"`: typed arrays are windows into the received buffer, for a worker that owns the whole
 * batch. `"own"`: each row has a buffer of its own, so that a caller who keeps, changes or transfers its result
 * touches nobody else's.
 */
export type RowOwnership = "view" | "own";

// Joined text up to this length is decoded at once and cut: a cut string keeps the whole text alive, so it is bounded.
const longestSharedText = 16 * 1024;

const Tag = { text: 1, number: 2, boolean: 3, rows: 4, record: 5, slots: 6, clone: 7 } as const;
const headerBytes = 8;
const maxColumns = 64;
const maxDepth = 3;

type TypedArray = NodeJS.TypedArray;
type RowConstructor = new (buffer: ArrayBuffer, byteOffset: number, length: number) => TypedArray;

// The index is the kind on the wire. Subclasses other than Buffer go through structured clone.
const rowConstructors = [
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
] as const;
const bufferKind = rowConstructors.length;
const arrayBufferKind = bufferKind + 1;
const kindOfPrototype = new Map<unknown, number>([
  ...rowConstructors.map((constructor, kind): [unknown, number] => [constructor.prototype, kind]),
  [Buffer.prototype, bufferKind],
  [ArrayBuffer.prototype, arrayBufferKind],
]);

/**
 * Packs values by index. The values are read, never changed or detached; what no column takes goes through structured
 * clone.
 * @throws {TypeError} a value that structured clone refuses (a function, a symbol).
 */
export function pack(values: ArrayLike<unknown>): Packed {
  const column = planSlots(values);
  const large: Uint8Array[] = [];
  const buffer = uninitialised(headerBytes + column.bytes);
  const writer: Writer = {
    bytes: Buffer.from(buffer),
    words: new Uint32Array(buffer),
    at: headerBytes,
    large,
  };
  writer.words[0] = values.length;
  writer.words[1] = 0;
  column.write(writer);
  return { buffer, large };
}

/** The reverse of `pack`. Rows of `large` are used as they are. */
export function unpack({ buffer, large }: Packed, ownership: RowOwnership): unknown[] {
  const words = new Uint32Array(buffer, 0, Math.floor(buffer.byteLength / 4));
  const reader: Reader = { buffer, bytes: Buffer.from(buffer), words, at: headerBytes, large, nextLarge: 0, ownership };
  return readColumn(reader, words[0] ?? 0);
}

/** The buffers to transfer; large rows are copied into their own, once. */
export function transferable({ buffer, large }: Packed): { packed: Packed; transfer: ArrayBuffer[] } {
  if (large.length === 0) return { packed: { buffer, large }, transfer: [buffer] };
  const copies = large.map(copyOf);
  return { packed: { buffer, large: copies }, transfer: [buffer, ...copies.map((copy) => copy.buffer)] };
}

interface Writer {
  readonly bytes: Buffer;
  readonly words: Uint32Array;
  at: number;
  readonly large: Uint8Array[];
}

interface Reader {
  readonly buffer: ArrayBuffer;
  readonly bytes: Buffer;
  readonly words: Uint32Array;
  at: number;
  readonly large: readonly Uint8Array[];
  nextLarge: number;
  readonly ownership: RowOwnership;
}

/** A column that knows its size, header and padding included, before anything is written. */
interface Column {
  readonly bytes: number;
  write(writer: Writer): void;
}

function planSlots(values: ArrayLike<unknown>): Column {
  const errorAt: number[] = [];
  for (let i = 0; i < values.length; i++) if (isError(values[i])) errorAt.push(i);
  if (errorAt.length === 0) return planColumn(values, 0);

  const rest = Array.from(values).filter((value) => !isError(value));
  const errors = planClone(errorAt.map((i) => describeError(values[i])));
  const others = planColumn(rest, 0);
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

const isError = (value: unknown): boolean => typeof value === "object" && value !== null && looksLikeError(value);
const looksLikeError = (value: object): boolean => value instanceof Error || isNativeError(value);

function planColumn(values: ArrayLike<unknown>, depth: number): Column {
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
      return planRows(values, first) ?? planRecord(values, first, depth) ?? planClone(values);
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
  const texts = Array.from(values);
  const joined = texts.join("");
  const ascii = Buffer.byteLength(joined, "utf8") === joined.length;
  const textBytes = ascii ? joined.length : joined.length * 2;
  return {
    bytes: headerBytes + padded(texts.length * 4) + padded(textBytes),
    write(writer) {
      writeHeader(writer, Tag.text, ascii ? 0 : 1, 0, joined.length);
      writeWords(
        writer,
        texts.map((text) => text.length),
      );
      writer.bytes.write(joined, writer.at, ascii ? "latin1" : "utf16le");
      writer.at += padded(textBytes);
    },
  };
}

function planNumbers(values: ArrayLike<number>): Column {
  return {
    bytes: headerBytes + values.length * 8,
    write(writer) {
      writeHeader(writer, Tag.number, 0, 0, 0);
      new Float64Array(writer.bytes.buffer, writer.at, values.length).set(values);
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

function planRows(values: ArrayLike<unknown>, first: object): Column | undefined {
  const prototype: unknown = Object.getPrototypeOf(first);
  const kind = kindOfPrototype.get(prototype);
  if (kind === undefined) return undefined;
  const rows: Uint8Array[] = [];
  let smallBytes = 0;
  let uniform = true;
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== prototype) return undefined;
    const row = bytesOf(value as TypedArray | ArrayBuffer);
    if (row === undefined) return undefined;
    rows.push(row);
    if (row.byteLength !== rows[0]?.byteLength) uniform = false;
    if (row.byteLength < largeRowBytes) smallBytes += row.byteLength;
  }
  const elementBytes = bytesPerElement(kind);
  return {
    bytes: headerBytes + (uniform ? 0 : padded(rows.length * 4)) + padded(smallBytes),
    write(writer) {
      writeHeader(writer, Tag.rows, kind, uniform ? 1 : 0, (rows[0]?.byteLength ?? 0) / elementBytes);
      if (!uniform) {
        writeWords(
          writer,
          rows.map((row) => row.byteLength / elementBytes),
        );
      }
      const end = writer.at + padded(smallBytes);
      for (const row of rows) {
        if (row.byteLength >= largeRowBytes) {
          writer.large.push(row);
        } else {
          writer.bytes.set(row, writer.at);
          writer.at += row.byteLength;
        }
      }
      writer.at = end;
    },
  };
}

// Undefined for an object that only claims the prototype (Object.create(Float32Array.prototype)): it holds no bytes.
function bytesOf(value: TypedArray | ArrayBuffer): Uint8Array | undefined {
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  return value instanceof ArrayBuffer ? new Uint8Array(value) : undefined;
}

/** Plain objects with the same keys in the same order: one column a key. */
function planRecord(values: ArrayLike<unknown>, first: object, depth: number): Column | undefined {
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
  // An error inside a record has its own columns' way to travel.
  const columns = cells.map((column) => (column.some(isError) ? planClone(column) : planColumn(column, depth + 1)));
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

function readColumn(reader: Reader, count: number): unknown[] {
  const head = reader.at;
  const tag = reader.bytes[head];
  const kind = reader.bytes[head + 1] ?? 0;
  const flag = reader.bytes[head + 2] ?? 0;
  const number = reader.words[head / 4 + 1] ?? 0;
  reader.at += headerBytes;
  switch (tag) {
    case Tag.text:
      return readText(reader, count, kind === 0, number);
    case Tag.number:
      return readNumbers(reader, count);
    case Tag.boolean:
      return readBooleans(reader, count);
    case Tag.rows:
      return readRows(reader, count, kind, flag === 1 ? number : undefined);
    case Tag.record:
      return readRecord(reader, count, number);
    case Tag.slots:
      return readSlots(reader, count, number);
    case Tag.clone:
      return readClone(reader, number);
    default:
      throw new Error(`Not a packed list: tag ${tag} at byte ${head}.`);
  }
}

function readText(reader: Reader, count: number, ascii: boolean, totalLength: number): string[] {
  const lengths = readWords(reader, count);
  const encoding = ascii ? "latin1" : "utf16le";
  const width = ascii ? 1 : 2;
  const texts: string[] = [];
  let at = reader.at;
  reader.at += padded(totalLength * width);
  if (totalLength <= longestSharedText) {
    const joined = reader.bytes.toString(encoding, at, at + totalLength * width);
    let from = 0;
    for (const length of lengths) texts.push(joined.slice(from, (from += length)));
  } else {
    for (const length of lengths) texts.push(reader.bytes.toString(encoding, at, (at += length * width)));
  }
  return texts;
}

function readNumbers(reader: Reader, count: number): number[] {
  const numbers = Array.from(new Float64Array(reader.buffer, reader.at, count));
  reader.at += count * 8;
  return numbers;
}

function readBooleans(reader: Reader, count: number): boolean[] {
  const booleans: boolean[] = [];
  for (let i = 0; i < count; i++) booleans.push(reader.bytes[reader.at + i] === 1);
  reader.at += padded(count);
  return booleans;
}

function readRows(reader: Reader, count: number, kind: number, uniformLength: number | undefined): unknown[] {
  const lengths = uniformLength === undefined ? readWords(reader, count) : undefined;
  const elementBytes = bytesPerElement(kind);
  const rows: unknown[] = [];
  const start = reader.at;
  let at = start;
  for (let i = 0; i < count; i++) {
    const length = lengths === undefined ? (uniformLength as number) : (lengths[i] as number);
    const rowBytes = length * elementBytes;
    if (rowBytes >= largeRowBytes) {
      const large = reader.large[reader.nextLarge++] as Uint8Array<ArrayBuffer>;
      rows.push(rowOver(kind, large.buffer, large.byteOffset, length));
    } else if (reader.ownership === "own" || kind === arrayBufferKind) {
      rows.push(rowOver(kind, reader.buffer.slice(at, at + rowBytes), 0, length));
      at += rowBytes;
    } else {
      rows.push(rowOver(kind, reader.buffer, at, length));
      at += rowBytes;
    }
  }
  reader.at = start + padded(at - start);
  return rows;
}

function rowOver(kind: number, buffer: ArrayBuffer, byteOffset: number, length: number): unknown {
  if (kind === arrayBufferKind) return buffer;
  if (kind === bufferKind) return Buffer.from(buffer, byteOffset, length);
  return new (rowConstructors[kind] as RowConstructor)(buffer, byteOffset, length);
}

function readRecord(reader: Reader, count: number, keyCount: number): Record<string, unknown>[] {
  const keys = readColumn(reader, keyCount) as string[];
  const columns = keys.map(() => readColumn(reader, count));
  const records: Record<string, unknown>[] = [];
  for (let i = 0; i < count; i++) {
    const record: Record<string, unknown> = {};
    for (let k = 0; k < keyCount; k++) record[keys[k] as string] = (columns[k] as unknown[])[i];
    records.push(record);
  }
  return records;
}

function readSlots(reader: Reader, count: number, errorCount: number): unknown[] {
  const errorAt = readWords(reader, errorCount);
  const errors = readColumn(reader, errorCount) as ErrorDescription[];
  const others = readColumn(reader, count - errorCount);
  const values: unknown[] = [];
  let nextError = 0;
  for (let i = 0; i < count; i++) {
    if (errorAt[nextError] === i) values.push(rebuildError(errors[nextError++] as ErrorDescription));
    else values.push(others[i - nextError]);
  }
  return values;
}

function readClone(reader: Reader, byteLength: number): unknown[] {
  const at = reader.at;
  reader.at += padded(byteLength);
  return deserialize(reader.bytes.subarray(at, at + byteLength)) as unknown[];
}

function writeHeader(writer: Writer, tag: number, kind: number, flag: number, number: number): void {
  writer.bytes[writer.at] = tag;
  writer.bytes[writer.at + 1] = kind;
  writer.bytes[writer.at + 2] = flag;
  writer.bytes[writer.at + 3] = 0;
  writer.words[writer.at / 4 + 1] = number;
  writer.at += headerBytes;
}

function writeWords(writer: Writer, numbers: readonly number[]): void {
  writer.words.set(numbers, writer.at / 4);
  writer.at += padded(numbers.length * 4);
}

function readWords(reader: Reader, count: number): Uint32Array {
  const numbers = reader.words.subarray(reader.at / 4, reader.at / 4 + count);
  reader.at += padded(count * 4);
  return numbers;
}

const padded = (bytes: number): number => (bytes + 7) & ~7;

const bytesPerElement = (kind: number): number => rowConstructors[kind]?.BYTES_PER_ELEMENT ?? 1;

// Unlike `new ArrayBuffer`, not cleared first: every byte that is read is written before. Not from Buffer's pool, which
// can not be transferred.
const uninitialised = (bytes: number): ArrayBuffer => Buffer.allocUnsafeSlow(bytes).buffer;

function copyOf(row: Uint8Array): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(uninitialised(row.byteLength));
  copy.set(row);
  return copy;
}
