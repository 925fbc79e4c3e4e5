import type { Writable } from "node:stream";
import { piecesOf, encodeHead, decodeHead, type Message } from "./message.ts";
import { headBytes } from "./pack.ts";
import { PieceFiller, uninitialised, writePieces } from "./pieces.ts";

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

export const writeFrame = (pipe: Writable, message: Message): void => writePieces(pipe, frameOf(message));

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
  readonly #filler: PieceFiller = new PieceFiller(this.#head, (piece) => this.#next(piece));

  constructor(onMessage: (message: Message) => void) {
    this.#onMessage = onMessage;
  }

  /** Where the next bytes should go; pass their number to `received`. */
  target(): Uint8Array {
    const { piece, filled } = this.#filler;
    return piece.byteLength - filled >= scratchBytes ? piece.subarray(filled) : this.#scratch;
  }

  received(bytes: number, into: Uint8Array): void {
    if (into === this.#scratch) this.push(into.subarray(0, bytes));
    else this.#filler.advance(bytes);
  }

  push(chunk: Uint8Array): void {
    this.#filler.push(chunk);
  }

  #next(full: Uint8Array): void {
    if (this.#main === undefined) {
      this.#main = uninitialised(piecesOf(this.#head).bufferBytes);
      this.#main.set(this.#head);
      this.#filler.fill(this.#main, headBytes);
    } else if (full === this.#main) {
      const { largeRows } = piecesOf(this.#head);
      if (largeRows === 0) this.#emit(this.#main);
      else this.#filler.fill((this.#lengths = new Uint8Array(largeRows * lengthBytes)));
    } else if (this.#lengths !== undefined && full === this.#lengths) {
      this.#large = Array.from(new Float64Array(this.#lengths.buffer), uninitialised);
      this.#nextLarge = 1;
      this.#filler.fill(this.#large[0] as Uint8Array);
    } else if (this.#nextLarge < this.#large.length) {
      this.#filler.fill(this.#large[this.#nextLarge++] as Uint8Array);
    } else {
      this.#emit(this.#main);
    }
  }

  #emit(main: Uint8Array<ArrayBuffer>): void {
    const message = decodeHead({ buffer: main.buffer, large: this.#large });
    this.#main = undefined;
    this.#lengths = undefined;
    this.#large = [];
    this.#filler.fill(this.#head);
    this.#onMessage(message);
  }
}
