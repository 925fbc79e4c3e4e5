import type { Writable } from "node:stream";
import { piecesOf, encodeHead, decodeHead, type Message } from "./message.ts";
import { headBytes } from "./pack.ts";

/*
 * A message on a pipe: the buffer, whose head says how long it is and how many large rows follow, then the length of
 * each as f64, then the rows.
 */

const lengthBytes = 8;

/** How much is read at once while no large frame is arriving. */
const scratchBytes = 64 * 1024;

/** The pieces to write, in order: the message's own memory, not copies. */
export function frameOf(message: Message): Uint8Array[] {
  const { buffer, large } = encodeHead(message);
  const main = new Uint8Array(buffer);
  if (large.length === 0) return [main];
  const lengths = Float64Array.from(large, (row) => row.byteLength);
  return [main, new Uint8Array(lengths.buffer), ...large];
}

/** Writes a frame with one system call where the pipe has room. */
export function writeFrame(pipe: Writable, message: Message): void {
  const pieces = frameOf(message);
  if (pieces.length > 1) pipe.cork();
  for (const piece of pieces) pipe.write(piece);
  if (pieces.length > 1) pipe.uncork();
}

/**
 * Assembles frames from the pieces that arrive. Each buffer and large row gets memory of its own; where the reader
 * of the pipe lets us choose (`target`), a big one is read straight into its place.
 */
export class FrameReader {
  readonly #onMessage: (message: Message) => void;
  readonly #scratch: Uint8Array = new Uint8Array(scratchBytes);
  readonly #head: Uint8Array<ArrayBuffer> = new Uint8Array(headBytes);
  #main: Uint8Array<ArrayBuffer> | undefined;
  #lengths: Uint8Array<ArrayBuffer> | undefined;
  #large: Uint8Array<ArrayBuffer>[] = [];
  #nextLarge = 0;
  #filling: Uint8Array = this.#head;
  #filled = 0;

  constructor(onMessage: (message: Message) => void) {
    this.#onMessage = onMessage;
  }

  /** Where the next bytes should go; pass their number to `received`. */
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

  /** Moves on to the next piece while the current one is full; pieces may be empty. */
  #advance(): void {
    while (this.#filled === this.#filling.byteLength) {
      if (this.#main === undefined) {
        this.#main = uninitialised(piecesOf(this.#head).bufferBytes);
        this.#main.set(this.#head);
        this.#fill(this.#main, headBytes);
      } else if (this.#filling === this.#main) {
        const { largeRows } = piecesOf(this.#head);
        if (largeRows === 0) this.#emit(this.#main);
        else this.#fill((this.#lengths = new Uint8Array(largeRows * lengthBytes)));
      } else if (this.#lengths !== undefined && this.#filling === this.#lengths) {
        this.#large = Array.from(new Float64Array(this.#lengths.buffer), uninitialised);
        this.#nextLarge = 1;
        this.#fill(this.#large[0] as Uint8Array);
      } else if (this.#nextLarge < this.#large.length) {
        this.#fill(this.#large[this.#nextLarge++] as Uint8Array);
      } else {
        this.#emit(this.#main);
      }
    }
  }

  #emit(main: Uint8Array<ArrayBuffer>): void {
    const message = decodeHead({ buffer: main.buffer, large: this.#large });
    this.#main = undefined;
    this.#lengths = undefined;
    this.#large = [];
    this.#fill(this.#head);
    this.#onMessage(message);
  }

  #fill(piece: Uint8Array, from = 0): void {
    this.#filling = piece;
    this.#filled = from;
  }
}

// Not cleared first: every byte is overwritten before the message is handed on.
const uninitialised = (bytes: number): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.allocUnsafeSlow(bytes).buffer);
