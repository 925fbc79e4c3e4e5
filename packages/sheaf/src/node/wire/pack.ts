import { startEncoding, type RowEncoder } from "./encoded-rows.ts";
import { readColumn, type Reader } from "./read.ts";
import { headBytes, headerBytes, uninitialised, type Packed, type RowOwnership } from "./layout.ts";
import { planSlots, scratchBytes, scratchWriter, tooLarge, writerOf } from "./write.ts";

export { headBytes, type Packed, type RowOwnership } from "./layout.ts";

/** The most that a list may take beside its large rows. */
const longestBytes = 2 ** 31;

/**
 * Packs values by index. The values are read, never changed or detached; values that fit no column go through structured
 * clone. With an `encoder`, rows of float32 are followed by their encodings.
 * @throws {TypeError} a value that structured clone refuses (a function, a symbol). {RangeError} more than 2 GiB beside the
 * rows of 64 KiB and up, or texts longer together than a string can be.
 */
export function pack(values: ArrayLike<unknown>, encoder?: RowEncoder): Packed {
  startEncoding();
  const column = planSlots(values, encoder);
  const size = headBytes + headerBytes + column.bytes;
  if (size > longestBytes) throw tooLarge(values.length, `${(size / 2 ** 30).toFixed(1)} GiB`, "2 GiB");
  const writer = size <= scratchBytes ? scratchWriter() : writerOf(uninitialised(size));
  writer.words[headBytes / 4] = values.length;
  writer.at = headBytes + headerBytes;
  column.write(writer);
  const buffer = size <= scratchBytes ? writer.buffer.slice(0, size) : writer.buffer;
  return { buffer, large: writer.large };
}

/** The bytes of packed values. */
export const packedBytes = ({ buffer, large }: Packed): number =>
  large.reduce((sum, row) => sum + row.byteLength, buffer.byteLength);

/** The reverse of `pack`. Rows of `large` are used as they are. */
export function unpack({ buffer, large }: Packed, ownership: RowOwnership): unknown[] {
  const words = new Uint32Array(buffer);
  const reader: Reader = {
    buffer,
    bytes: undefined,
    words,
    at: headBytes + headerBytes,
    large,
    nextLarge: 0,
    ownership,
  };
  return readColumn(reader, words[headBytes / 4] ?? 0);
}

/** The buffers to transfer; large rows are copied into their own, once. */
export function transferable({ buffer, large }: Packed): { packed: Packed; transfer: ArrayBuffer[] } {
  if (large.length === 0) return { packed: { buffer, large }, transfer: [buffer] };
  const copies = large.map(copyOf);
  return { packed: { buffer, large: copies }, transfer: [buffer, ...copies.map((copy) => copy.buffer)] };
}

function copyOf(row: Uint8Array): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(uninitialised(row.byteLength));
  copy.set(row);
  return copy;
}
