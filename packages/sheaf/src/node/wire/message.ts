import { describeError, rebuildError } from "../../core/contract/wire-error.ts";
import type { RowEncoder } from "./encoded-rows.ts";
import { isError } from "./write.ts";
import { headBytes, pack, packedBytes, unpack, type Packed } from "./pack.ts";

export const Kind = {
  // to the worker
  load: 1,
  batch: 2,
  abort: 3,
  close: 4,
  /** A batch whose rows the caller wants encoded as well. */
  batchToEncode: 5,
  // from the worker
  warming: 16,
  ready: 17,
  loadFailed: 18,
  results: 19,
  failure: 20,
  /** The result of one item, before those of the others. */
  answer: 22,
  /** An uncaught error in a process; its end follows. */
  uncaught: 21,
} as const;

export interface Message {
  readonly kind: number;
  /** The id of its batch, as its instance counts them; 0 for none. */
  readonly id: number;
  /** Batches: the attempt. `results` and `failure`: the run time in milliseconds. `answer`: the index of the item. Else 0. */
  readonly value: number;
  /** Memory of the worker in bytes, sent with `results` now and then; else 0. */
  readonly memoryBytes: number;
  readonly packed: Packed | undefined;
}

/** One end of the channel between a pool and a worker. */
export interface Port {
  send(message: Message): void;
}

/**
 * A message as it travels: one buffer that starts with its head, and its large rows. The head: kind u32, id u32,
 * value f64, memoryBytes f64, bytes of the buffer f64, number of large rows u32, a mark u32 that only messages have.
 */
export type Encoded = Packed;

export const message = (kind: number, id = 0, value = 0, packed?: Packed, memoryBytes = 0): Message => ({
  kind,
  id,
  value,
  memoryBytes,
  packed,
});

const mark = 0x5e1eafed;

// Numbers of a head are written and read here: four views for every message would cost more than the copy.
const head = new ArrayBuffer(headBytes);
const headWords = new Uint32Array(head);
const headFloats = new Float64Array(head);

/** Writes the head into the packed buffer. */
export function encodeHead({ kind, id, value, memoryBytes, packed }: Message): Encoded {
  const buffer = packed?.buffer ?? new ArrayBuffer(headBytes);
  headWords[0] = kind;
  headWords[1] = id;
  headFloats[1] = value;
  headFloats[2] = memoryBytes;
  headFloats[3] = buffer.byteLength;
  headWords[8] = packed?.large.length ?? 0;
  headWords[9] = mark;
  new Uint32Array(buffer, 0, headWords.length).set(headWords);
  return { buffer, large: packed?.large ?? [] };
}

export function decodeHead({ buffer, large }: Encoded): Message {
  headWords.set(new Uint32Array(buffer, 0, headWords.length));
  return {
    kind: headWords[0] as number,
    id: headWords[1] as number,
    value: headFloats[1] as number,
    memoryBytes: headFloats[2] as number,
    packed: buffer.byteLength === headBytes ? undefined : { buffer, large },
  };
}

/** The head's description of the pieces to come. @throws {Error} if it is not a head: something else wrote to the pipe. */
export function piecesOf(headOfBuffer: Uint8Array): { bufferBytes: number; largeRows: number } {
  new Uint8Array(head).set(headOfBuffer);
  if (headWords[9] !== mark) throw new Error("received malformed data from a worker: something else wrote to its pipe");
  return { bufferBytes: headFloats[3] as number, largeRows: headWords[8] as number };
}

const errorOf = (thrown: unknown): unknown => (isError(thrown) ? thrown : rebuildError(describeError(thrown)));

/** An error is sent as a list of one. */
export const packError = (thrown: unknown): Packed => pack([errorOf(thrown)]);

/**
 * An error replaces a result that cannot be packed (a function, a promise, a detached buffer) or takes more than `maxBytes`.
 * Results are checked one by one only if packing all of them fails.
 */
export function packResults(results: ArrayLike<unknown>, maxBytes: number, encoder: RowEncoder | undefined): Packed {
  try {
    if (!Array.prototype.some.call(results, (result) => plainBytes(result) > maxBytes)) {
      const packed = pack(results, encoder);
      if (packedBytes(packed) <= maxBytes) return packed;
    }
  } catch (error) {
    if (results.length === 1) throw error;
  }
  const packable = (result: unknown): unknown => {
    try {
      const plain = plainBytes(result);
      const bytes = plain > maxBytes ? plain : packedBytes(pack([result]));
      if (bytes <= maxBytes || isError(result)) return result;
      return new RangeError(`the result takes ${bytes} bytes, more than ${maxBytes}`);
    } catch (own) {
      return errorOf(own);
    }
  };
  return pack(Array.from(results, packable), encoder);
}

/** The size of a text or of numbers, without packing them. */
const plainBytes = (value: unknown): number =>
  typeof value === "string" ? value.length : ArrayBuffer.isView(value) ? value.byteLength : 0;

export const unpackError = (packed: Packed): Error => unpack(packed, "own")[0] as Error;
