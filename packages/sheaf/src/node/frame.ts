import type { Message } from "./message.ts";

/**
 * A message as bytes on a pipe: a head of 32 bytes (kind u8, reserved, id u32, value f64, memoryBytes f64, number of
 * parts u32), the length of each part as f64, then the parts: the packed buffer and its large rows, back to back.
 */
const headBytes = 32;
const lengthBytes = 8;

/** How much is read at once while nothing big is under way. */
const scratchBytes = 64 * 1024;

/** The pieces to write, in order. The parts are the message's own memory, not copies. */
export function frameOf({ kind, id, value, memoryBytes, packed }: Message): Uint8Array[] {
  const parts = packed === undefined ? [] : [new Uint8Array(packed.buffer), ...packed.large];
  const head = new DataView(new ArrayBuffer(headBytes + parts.length * lengthBytes));
  head.setUint8(0, kind);
  head.setUint32(4, id);
  head.setFloat64(8, value);
  head.setFloat64(16, memoryBytes);
  head.setUint32(24, parts.length);
  parts.forEach((part, i) => head.setFloat64(headBytes + i * lengthBytes, part.byteLength));
  return [new Uint8Array(head.buffer), ...parts];
}

/**
 * Puts frames together from whatever pieces arrive. Each part gets a buffer of its own; where the reader of the pipe
 * lets us choose (`target`), a big part is read straight into its place.
 */
export class FrameReader {
  readonly #onMessage: (message: Message) => void;
  readonly #scratch: Uint8Array = new Uint8Array(scratchBytes);
  #head: Uint8Array<ArrayBuffer> = new Uint8Array(headBytes);
  #lengths: Uint8Array<ArrayBuffer> | undefined;
  #parts: Uint8Array<ArrayBuffer>[] | undefined;
  #part = 0;
  #filling: Uint8Array = this.#head;
  #filled = 0;

  constructor(onMessage: (message: Message) => void) {
    this.#onMessage = onMessage;
  }

  /** Where the next bytes should go; tell `received` how many came. */
  target(): Uint8Array {
    const missing = this.#filling.byteLength - this.#filled;
    return missing >= scratchBytes ? this.#filling.subarray(this.#filled) : this.#scratch;
  }

  received(bytes: number, into: Uint8Array): void {
    if (into === this.#scratch) return this.push(into.subarray(0, bytes));
    this.#filled += bytes;
    this.#advance();
  }

  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.byteLength) {
      const count = Math.min(chunk.byteLength - at, this.#filling.byteLength - this.#filled);
      this.#filling.set(count === chunk.byteLength ? chunk : chunk.subarray(at, at + count), this.#filled);
      this.#filled += count;
      at += count;
      this.#advance();
    }
  }

  /** Goes on to the next piece while the present one is full; pieces may be empty. */
  #advance(): void {
    while (this.#filled === this.#filling.byteLength) {
      if (this.#lengths === undefined) {
        const count = viewOf(this.#head).getUint32(24);
        if (count === 0) this.#emit();
        else this.#fill((this.#lengths = new Uint8Array(count * lengthBytes)));
      } else if (this.#parts === undefined) {
        this.#parts = partsOf(viewOf(this.#lengths));
        this.#part = 0;
        this.#fill(this.#parts[0] as Uint8Array);
      } else if (++this.#part < this.#parts.length) {
        this.#fill(this.#parts[this.#part] as Uint8Array);
      } else {
        this.#emit();
      }
    }
  }

  #emit(): void {
    const head = viewOf(this.#head);
    const [main, ...large] = this.#parts ?? [];
    const message: Message = {
      kind: head.getUint8(0),
      id: head.getUint32(4),
      value: head.getFloat64(8),
      memoryBytes: head.getFloat64(16),
      packed: main === undefined ? undefined : { buffer: main.buffer, large },
    };
    this.#lengths = undefined;
    this.#parts = undefined;
    this.#fill(this.#head);
    this.#onMessage(message);
  }

  #fill(piece: Uint8Array): void {
    this.#filling = piece;
    this.#filled = 0;
  }
}

const viewOf = (bytes: Uint8Array<ArrayBuffer>): DataView => new DataView(bytes.buffer);

// Not cleared first: every byte is overwritten before the message is handed on.
function partsOf(lengths: DataView): Uint8Array<ArrayBuffer>[] {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for (let at = 0; at < lengths.byteLength; at += lengthBytes) {
    parts.push(new Uint8Array(Buffer.allocUnsafeSlow(lengths.getFloat64(at)).buffer));
  }
  return parts;
}
