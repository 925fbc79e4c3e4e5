import type { Writable } from "node:stream";

/*
 * A frame of the worker protocol: u32 bytes of the header, u32 bytes of the payload (little-endian), the header (JSON, an
 * object with a `type`), the payload. docs/reference/worker-protocol.md describes it.
 */

export const maxHeaderBytes: number = 16 * 2 ** 20;
export const maxPayloadBytes: number = 2 ** 30;

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
  if (pieces.length > 0) pipe.cork();
  pipe.write(start);
  for (const piece of pieces) pipe.write(piece);
  if (pieces.length > 0) pipe.uncork();
}

/** Puts frames together from whatever pieces arrive. */
export class FrameReader {
  readonly #onFrame: (frame: Frame) => void;
  readonly #head: Buffer = Buffer.alloc(headBytes);
  #header: Buffer | undefined;
  #payload: Uint8Array<ArrayBuffer> | undefined;
  #filling: Uint8Array = this.#head;
  #filled = 0;

  constructor(onFrame: (frame: Frame) => void) {
    this.#onFrame = onFrame;
  }

  /** Whether the bytes so far end in the middle of a frame. */
  get isInside(): boolean {
    return this.#filled > 0 || this.#filling !== this.#head;
  }

  /** @throws {Error} what came is not a frame. */
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

  /** Goes on to the next part while the present one is full; a payload may be empty. */
  #advance(): void {
    while (this.#filled === this.#filling.byteLength) {
      if (this.#filling === this.#head) this.#fill((this.#header = Buffer.allocUnsafe(this.#headerBytes())));
      else if (this.#filling === this.#header) this.#fill((this.#payload = newPayload(this.#head.readUInt32LE(4))));
      else return this.#emit();
    }
  }

  #headerBytes(): number {
    const headerBytes = this.#head.readUInt32LE(0);
    const payloadBytes = this.#head.readUInt32LE(4);
    if (headerBytes > maxHeaderBytes || payloadBytes > maxPayloadBytes) {
      throw new Error(`a frame of ${headerBytes} + ${payloadBytes} bytes is over the bound`);
    }
    return headerBytes;
  }

  #emit(): void {
    const header = headerOf(this.#header!);
    const payload = this.#payload!;
    this.#header = this.#payload = undefined;
    this.#fill(this.#head);
    this.#onFrame({ header, payload });
  }

  #fill(part: Uint8Array): void {
    this.#filling = part;
    this.#filled = 0;
  }
}

// Not cleared first: every byte is overwritten before the frame is handed on.
const newPayload = (bytes: number): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.allocUnsafeSlow(bytes).buffer);

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
