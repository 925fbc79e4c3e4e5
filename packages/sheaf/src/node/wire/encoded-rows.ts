import { largeRowBytes, padded } from "./layout.ts";

/**
 * Makes bytes of a row of float32, such as its JSON, in the worker that has just computed it: the exports of a module of
 * its own.
 */
export interface RowEncoder {
  maxBytes(row: Float32Array): number;
  /** Writes the row into `target` from `offset` on. @returns the offset after the last byte written. */
  write(row: Float32Array, target: Uint8Array, offset: number): number;
}

/** Batches whose rows may take more travel as they are: the rows kept for writing are bounded. */
const maxScratchBytes = 16 * 1024 * 1024;

let scratch: Buffer = Buffer.alloc(0);
let used = 0;

/** Frees the rows encoded before. Once a list, as its columns are written only when all of them are planned. */
export function startEncoding(): void {
  used = 0;
}

/** The bytes of a column's rows, back to back. */
export interface EncodedRows {
  /** In the message, with the lengths and padding. */
  readonly bytes: number;
  readonly lengths: readonly number[];
  readonly text: Uint8Array;
}

/** Undefined where the rows are too large to travel encoded. */
export function encodeRows(rows: ArrayLike<Float32Array>, encoder: RowEncoder): EncodedRows | undefined {
  let maxBytes = 0;
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i] as Float32Array;
    if (row.byteLength >= largeRowBytes) return undefined;
    maxBytes += encoder.maxBytes(row);
  }
  if (used + maxBytes > maxScratchBytes) return undefined;
  // Columns that are encoded already keep the smaller one.
  if (used + maxBytes > scratch.length) {
    scratch = Buffer.allocUnsafeSlow(maxBytes);
    used = 0;
  }
  const lengths: number[] = [];
  const start = used;
  for (let i = 0; i < rows.length; i++) {
    const end = encoder.write(rows[i] as Float32Array, scratch, used);
    lengths.push(end - used);
    used = end;
  }
  const text = scratch.subarray(start, used);
  return { bytes: padded(lengths.length * 4) + padded(text.length), lengths, text };
}

const encoded: unique symbol = Symbol.for("sheaf.encodedRow");

interface Encoded {
  [encoded]?: Uint8Array;
}

/** Notes a worker's encoding of a row. A property: a WeakMap takes 0.1 µs a row more. */
export function noteEncoded(row: Float32Array, bytes: Uint8Array): void {
  (row as Encoded)[encoded] = bytes;
}

/**
 * The worker's encoding of a row of its results, by `encodeRows`: a window into the memory of the whole batch, to be copied.
 * Undefined for any other array, and where the worker did not encode the batch.
 */
export const encodedRow = (row: Float32Array): Uint8Array | undefined => (row as Encoded)[encoded];

/** @throws {TypeError} the module is not a row encoder. */
export function encoderOf(module: Partial<RowEncoder>, url: string): RowEncoder {
  if (typeof module.maxBytes !== "function" || typeof module.write !== "function")
    throw new TypeError(`${url} is not a row encoder: it must export maxBytes(row) and write(row, target, offset).`);
  return module as RowEncoder;
}
