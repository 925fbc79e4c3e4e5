import type { FastifyInstance, FastifyRequest } from "fastify";
import { Problem } from "../../problems/problem.ts";
import { costs } from "../../shared/costs.ts";

export type BodyDone = (error: Error | null, body?: Buffer) => void;
export type ReadBody = (request: FastifyRequest, payload: NodeJS.ReadableStream, done: BodyDone) => void;

/** Puts the pieces of a body of `length` bytes together. */
type Join = (pieces: readonly Buffer[], length: number, request: FastifyRequest) => Buffer;

/**
 * Reads each body into one buffer, up to the app's bodyLimit. Fastify's own reader copies every body, even if it came in one piece,
 * as most do.
 */
export function bodyReader(app: FastifyInstance, join: Join = joined): ReadBody {
  const { bodyLimit = Infinity } = app.initialConfig;
  const tooLarge = (): Problem =>
    new Problem("BODY_TOO_LARGE", `The body is larger than ${bodyLimit} bytes (MAX_BODY_BYTES).`);
  return (request, payload, done) => {
    const announced = Number(request.headers["content-length"]);
    if (announced > bodyLimit) return done(tooLarge());
    const pieces = new Pieces();
    let received = 0;
    let isOver = false;
    const end: BodyDone = (error, body) => {
      if (isOver) return;
      isOver = true;
      done(error, body);
    };
    payload.on("data", (piece: Buffer) => {
      received += piece.length;
      if (received > bodyLimit) end(tooLarge());
      else if (pieces.areTiny(received)) end(tinyPieces());
      else if (!isOver) pieces.add(piece);
    });
    payload.on("error", end);
    payload.on("end", () => {
      if (announced >= 0 && received !== announced)
        return end(new Problem("BAD_REQUEST", `The body has ${received} bytes; content-length says ${announced}.`));
      return end(null, join(pieces.all, received, request));
    });
  };
}

/**
 * Pieces of at least this many bytes are kept as they are; smaller ones are copied together, because an object for each would
 * outweigh its bytes.
 */
const wholeBytes = 4096;

const tinyPieces = (): Problem =>
  new Problem("BAD_REQUEST", `The body comes in chunks of less than ${costs.meanPieceBytes} bytes; send larger ones.`, {
    headers: { connection: "close" },
  });

/** The pieces of a body. Small ones are copied together: a chunk of one byte costs a client 6 bytes, and a Buffer of it 500. */
class Pieces {
  readonly #pieces: Buffer[] = [];
  #block: Buffer = Buffer.alloc(0);
  #used = 0;
  #count = 0;

  /** Whether `received` bytes came in so many pieces that the pieces cost more than the bytes. */
  areTiny(received: number): boolean {
    return ++this.#count > costs.freePieces && received < costs.meanPieceBytes * this.#count;
  }

  add(piece: Buffer): void {
    // Most bodies come in one piece.
    if (this.#pieces.length === 0 || piece.length >= wholeBytes) {
      this.#endBlock();
      this.#pieces.push(piece);
      return;
    }
    if (piece.length > this.#block.length - this.#used) {
      this.#endBlock();
      this.#block = Buffer.allocUnsafeSlow(16 * wholeBytes);
    }
    this.#used += piece.copy(this.#block, this.#used);
  }

  get all(): readonly Buffer[] {
    this.#endBlock();
    return this.#pieces;
  }

  #endBlock(): void {
    if (this.#used > 0) this.#pieces.push(this.#block.subarray(0, this.#used));
    this.#block = this.#block.subarray(this.#used);
    this.#used = 0;
  }
}

/** Returns a single piece as it is if it owns its memory: keeping part of a body must not keep a shared pool alive. */
export function joined(pieces: readonly Buffer[], length: number): Buffer {
  const [first] = pieces;
  if (pieces.length === 1 && first!.buffer.byteLength === length) return first!;
  return Buffer.concat(pieces, length);
}
