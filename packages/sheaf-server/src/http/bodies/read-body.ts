import type { FastifyInstance, FastifyRequest } from "fastify";
import { Problem } from "../../problems/problem.ts";

export type BodyDone = (error: Error | null, body?: Buffer) => void;
export type ReadBody = (request: FastifyRequest, payload: NodeJS.ReadableStream, done: BodyDone) => void;

/** Puts the pieces of a body of `length` bytes together. */
type Join = (pieces: readonly Buffer[], length: number, request: FastifyRequest) => Buffer;

/**
 * Reads bodies into one buffer each, up to the app's bodyLimit. Fastify's own reader copies every body, also the one piece
 * that most consist of.
 */
export function bodyReader(app: FastifyInstance, join: Join = joined): ReadBody {
  const { bodyLimit = Infinity } = app.initialConfig;
  const tooLarge = (): Problem =>
    new Problem("BODY_TOO_LARGE", `The body is larger than ${bodyLimit} bytes (MAX_BODY_BYTES).`);
  return (request, payload, done) => {
    const announced = Number(request.headers["content-length"]);
    if (announced > bodyLimit) return done(tooLarge());
    const pieces: Buffer[] = [];
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
      else if (!isOver) pieces.push(piece);
    });
    payload.on("error", end);
    payload.on("end", () => {
      if (announced >= 0 && received !== announced)
        return end(new Problem("BAD_REQUEST", `The body has ${received} bytes; content-length says ${announced}.`));
      return end(null, join(pieces, received, request));
    });
  };
}

/** A single piece as it is, where its memory is its own: a kept part of a body must not keep more than that. */
export function joined(pieces: readonly Buffer[], length: number): Buffer {
  const [first] = pieces;
  if (pieces.length === 1 && first!.buffer.byteLength === length) return first!;
  return Buffer.concat(pieces, length);
}
