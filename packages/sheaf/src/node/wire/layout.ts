import { typedArrays } from "../../shared/element-types.ts";

/**
 * One list of values as bytes: one buffer that holds everything small, column by column, and one buffer each for rows of
 * `largeRowBytes` and up. A worker message then carries a handful of transferred buffers instead of a tree of objects.
 *
 * Each column starts at a multiple of 8 with a header of 8 bytes: tag u8, kind u8, flag u16, number u32. Rows of typed
 * arrays of one kind stand back to back, so that equal rows read as one tensor. Numbers are in the machine's own order:
 * both ends are on one machine.
 */
export interface Packed {
  /** Its first `headBytes` are reserved for the message that carries it. */
  readonly buffer: ArrayBuffer;
  /** Rows with a buffer of their own, in order. From `pack` they are the caller's own memory: copy before transfer. */
  readonly large: readonly Uint8Array[];
}

/** Rows this big travel in a buffer of their own: copied once, and no result keeps the memory of another alive. */
export const largeRowBytes: number = 64 * 1024;

/**
 * How rows come out. `"view"`: typed arrays are windows into the received buffer, for a worker that owns the whole
 * batch. `"own"`: each row has a buffer of its own, so that a caller who keeps, changes or transfers its result
 * leaves the others alone.
 */
export type RowOwnership = "view" | "own";

/** Room at the start of every packed buffer, so that the head of a message needs no second piece. */
export const headBytes: number = 40;

export const Tag = { text: 1, number: 2, boolean: 3, rows: 4, record: 5, slots: 6, clone: 7 } as const;

/** Flags of a column of rows: all are of the length in its header; the encoding of each follows them. */
export const uniformRows = 1;
export const encodedRows = 2;

export const headerBytes = 8;

// The kind of a row is the index of its constructor. Subclasses other than Buffer go through structured clone.
export const float32Kind: number = typedArrays.indexOf(Float32Array);
export const bufferKind: number = typedArrays.length;
export const arrayBufferKind: number = bufferKind + 1;
export const kindOfPrototype: ReadonlyMap<unknown, number> = new Map<unknown, number>([
  ...typedArrays.map((constructor, kind): [unknown, number] => [constructor.prototype, kind]),
  [Buffer.prototype, bufferKind],
  [ArrayBuffer.prototype, arrayBufferKind],
]);

// Not with bit operations, which wrap at 2 GiB.
export const padded = (bytes: number): number => Math.ceil(bytes / 8) * 8;

export const bytesPerElement = (kind: number): number => typedArrays[kind]?.BYTES_PER_ELEMENT ?? 1;

// Unlike `new ArrayBuffer`, not cleared first: every byte that is read is written before. Not from Buffer's pool, which
// cannot be transferred.
export const uninitialised = (bytes: number): ArrayBuffer => Buffer.allocUnsafeSlow(bytes).buffer;
