import type { Writable } from "node:stream";

/** Memory whose every byte will be overwritten: it is not cleared first. */
export const uninitialised = (bytes: number): Uint8Array<ArrayBuffer> =>
  new Uint8Array(Buffer.allocUnsafeSlow(bytes).buffer);

/** Writes pieces with one system call where the pipe has room. */
export function writePieces(pipe: Writable, pieces: readonly Uint8Array[]): void {
  if (pieces.length > 1) pipe.cork();
  for (const piece of pieces) pipe.write(piece);
  if (pieces.length > 1) pipe.uncork();
}

/** Fills one piece of memory after the other with the bytes that arrive. */
export class PieceFiller {
  piece: Uint8Array;
  readonly #full: (piece: Uint8Array) => void;
  #filled = 0;

  /** `full` is called with each piece that has all its bytes, and calls `fill` with the next one. */
  constructor(first: Uint8Array, full: (piece: Uint8Array) => void) {
    this.piece = first;
    this.#full = full;
  }

  get filled(): number {
    return this.#filled;
  }

  /** The next piece; its first `from` bytes are there already. */
  fill(piece: Uint8Array, from: number = 0): void {
    this.piece = piece;
    this.#filled = from;
  }

  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.byteLength) {
      const count = Math.min(chunk.byteLength - at, this.piece.byteLength - this.#filled);
      this.piece.set(count === chunk.byteLength ? chunk : chunk.subarray(at, at + count), this.#filled);
      at += count;
      this.advance(count);
    }
  }

  /** Counts bytes written into the piece. The next piece may be full at once: pieces may be empty. */
  advance(bytes: number): void {
    this.#filled += bytes;
    while (this.#filled === this.piece.byteLength) this.#full(this.piece);
  }
}
