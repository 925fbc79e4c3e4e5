import type { Writable } from "node:stream";
import { PieceFiller, uninitialised, writePieces } from "../wire/pieces.ts";

/*
 * A frame of the worker protocol: u32 bytes of the header, u32 bytes of the payload (little-endian), the header (JSON, an
 * object with a `type`), the payload. protocol.md describes it.
 */

export const maxHeaderBytes: number = 16 * 2 ** 20;
export const maxPayloadBytes: number = 2 ** 30;
/** Largest message of a worker: larger results would block this process for seconds. */
export const maxResultBytes: number = 2 ** 28;

const headBytes = 8;

export interface Frame {
  readonly header: Readonly<Record<string, unknown>> & { readonly type: string };
  /** A buffer of its own. */
  readonly payload: Uint8Array<ArrayBuffer>;
}

/** Writes a frame with one system call where the pipe has room. @throws {RangeError} it is over the bounds. */
export function writeFrame(
  pipe: Writable,
  header: Readonly<Record<string, unknown>>,
  pieces: readonly Uint8Array[] = [],
): void {
  const json = JSON.stringify(header);
  const headerBytes = Buffer.byteLength(json);
  const payloadBytes = pieces.reduce((sum, { byteLength }) => sum + byteLength, 0);
  if (headerBytes > maxHeaderBytes || payloadBytes > maxPayloadBytes) {
    throw new RangeError(
      `a batch of ${payloadBytes} bytes is too large for one message to a worker (${maxPayloadBytes} at most). ` +
        "Lower maxBatchSize, or bound batches by their size with weigh and maxBatchWeight.",
    );
  }
  const start = Buffer.allocUnsafe(headBytes + headerBytes);
  start.writeUInt32LE(headerBytes, 0);
  start.writeUInt32LE(payloadBytes, 4);
  start.write(json, headBytes);
  writePieces(pipe, [start, ...pieces]);
}

/** Puts a worker's frames together from pieces of any size. */
export class FrameReader {
  readonly #onFrame: (frame: Frame) => void;
  readonly #head: Buffer = Buffer.alloc(headBytes);
  #header: Buffer | undefined;
  #payload: Uint8Array<ArrayBuffer> | undefined;
  readonly #filler: PieceFiller = new PieceFiller(this.#head, (piece) => this.#next(piece));

  constructor(onFrame: (frame: Frame) => void) {
    this.#onFrame = onFrame;
  }

  /** Whether the bytes so far end in the middle of a frame. */
  get isInside(): boolean {
    return this.#filler.filled > 0 || this.#filler.piece !== this.#head;
  }

  /** @throws {Error} for bytes that are not a frame. */
  push(chunk: Uint8Array): void {
    this.#filler.push(chunk);
  }

  #next(full: Uint8Array): void {
    if (full === this.#head) this.#filler.fill((this.#header = Buffer.allocUnsafe(this.#headerBytes())));
    else if (full === this.#header) this.#filler.fill((this.#payload = uninitialised(this.#head.readUInt32LE(4))));
    else this.#emit();
  }

  #headerBytes(): number {
    const headerBytes = this.#head.readUInt32LE(0);
    const payloadBytes = this.#head.readUInt32LE(4);
    if (headerBytes > maxHeaderBytes || payloadBytes > maxResultBytes) {
      throw new Error(`a frame of ${headerBytes} + ${payloadBytes} bytes is over the bound`);
    }
    return headerBytes;
  }

  #emit(): void {
    const header = headerOf(this.#header!);
    const payload = this.#payload!;
    this.#header = this.#payload = undefined;
    this.#filler.fill(this.#head);
    this.#onFrame({ header, payload });
  }
}

function headerOf(bytes: Buffer): Frame["header"] {
  let header: unknown;
  try {
    header = JSON.parse(bytes.toString());
  } catch {
    throw new Error("a header that is not JSON");
  }
  const { type } = (header ?? {}) as { type?: unknown };
  if (typeof type !== "string") throw new Error("a header without a type");
  return header as Frame["header"];
}
