import { typedArrays } from "../../shared/element-types.ts";
import { deserialize } from "node:v8";
import { noteEncoded } from "./encoded-rows.ts";
import { rebuildError, type WireError } from "../../core/contract/wire-error.ts";
import {
  arrayBufferKind,
  bufferKind,
  bytesPerElement,
  encodedRows,
  headerBytes,
  largeRowBytes,
  padded,
  Tag,
  uniformRows,
  type RowOwnership,
} from "./layout.ts";

// Joined text up to this length is decoded at once and cut: a cut string keeps the whole text alive, so it is bounded.
const longestSharedText = 16 * 1024;

export interface Reader {
  readonly buffer: ArrayBuffer;
  bytes: Buffer | undefined;
  readonly words: Uint32Array;
  at: number;
  readonly large: readonly Uint8Array[];
  nextLarge: number;
  readonly ownership: RowOwnership;
}

export function readColumn(reader: Reader, count: number): unknown[] {
  const head = reader.words[reader.at / 4] ?? 0;
  const tag = head & 0xff;
  const kind = (head >>> 8) & 0xff;
  const flag = head >>> 16;
  const number = reader.words[reader.at / 4 + 1] ?? 0;
  reader.at += headerBytes;
  switch (tag) {
    case Tag.text:
      return readText(reader, count, kind === 0, number);
    case Tag.number:
      return readNumbers(reader, count);
    case Tag.boolean:
      return readBooleans(reader, count);
    case Tag.rows:
      return readRows(reader, count, kind, flag, number);
    case Tag.record:
      return readRecord(reader, count, number);
    case Tag.slots:
      return readSlots(reader, count, number);
    case Tag.clone:
      return readClone(reader, number);
    default:
      throw new Error(`Not a packed list: tag ${tag} before byte ${reader.at}.`);
  }
}

const bytesIn = (reader: Reader): Buffer => (reader.bytes ??= Buffer.from(reader.buffer));

function readText(reader: Reader, count: number, ascii: boolean, totalLength: number): string[] {
  const lengths = readWords(reader, count);
  const encoding = ascii ? "latin1" : "utf16le";
  const width = ascii ? 1 : 2;
  const texts: string[] = [];
  let at = reader.at;
  reader.at += padded(totalLength * width);
  if (totalLength <= longestSharedText) {
    const joined = bytesIn(reader).toString(encoding, at, at + totalLength * width);
    let from = 0;
    for (const length of lengths) texts.push(joined.slice(from, (from += length)));
  } else {
    for (const length of lengths) texts.push(bytesIn(reader).toString(encoding, at, (at += length * width)));
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
  const bytes = bytesIn(reader);
  for (let i = 0; i < count; i++) booleans.push(bytes[reader.at + i] === 1);
  reader.at += padded(count);
  return booleans;
}

function readRows(reader: Reader, count: number, kind: number, flags: number, uniformLength: number): unknown[] {
  const lengths = (flags & uniformRows) === 0 ? readWords(reader, count) : undefined;
  const elementBytes = bytesPerElement(kind);
  const rows: unknown[] = [];
  const start = reader.at;
  let at = start;
  for (let i = 0; i < count; i++) {
    const length = lengths === undefined ? uniformLength : (lengths[i] as number);
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
  if ((flags & encodedRows) !== 0) readEncoded(reader, rows as Float32Array[]);
  return rows;
}

function readEncoded(reader: Reader, rows: readonly Float32Array[]): void {
  const lengths = readWords(reader, rows.length);
  const start = reader.at;
  let at = start;
  for (let i = 0; i < rows.length; i++) {
    const length = lengths[i] as number;
    noteEncoded(rows[i] as Float32Array, Buffer.from(reader.buffer, at, length));
    at += length;
  }
  reader.at = start + padded(at - start);
}

function rowOver(kind: number, buffer: ArrayBuffer, byteOffset: number, length: number): unknown {
  if (kind === arrayBufferKind) return buffer;
  if (kind === bufferKind) return Buffer.from(buffer, byteOffset, length);
  return new typedArrays[kind]!(buffer, byteOffset, length);
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
  const errors = readColumn(reader, errorCount) as WireError[];
  const others = readColumn(reader, count - errorCount);
  const values: unknown[] = [];
  let nextError = 0;
  for (let i = 0; i < count; i++) {
    if (errorAt[nextError] === i) values.push(rebuildError(errors[nextError++] as WireError));
    else values.push(others[i - nextError]);
  }
  return values;
}

function readClone(reader: Reader, byteLength: number): unknown[] {
  const at = reader.at;
  reader.at += padded(byteLength);
  return deserialize(bytesIn(reader).subarray(at, at + byteLength)) as unknown[];
}

function readWords(reader: Reader, count: number): Uint32Array {
  const numbers = reader.words.subarray(reader.at / 4, reader.at / 4 + count);
  reader.at += padded(count * 4);
  return numbers;
}
