import type { FastifyInstance, FastifyRequest } from "fastify";
import { compressed } from "../../../http/bodies/body.ts";
import { bodyReader, joined, type BodyDone } from "../../../http/bodies/read-body.ts";
import { Problem } from "../../../problems/problem.ts";

/** Of the JSON that stands before the bytes of tensors. */
export const headerLength = "inference-header-content-length";

/** Bodies of the binary extension, whose clients name their type or none. */
export function takeBinary(app: FastifyInstance): void {
  const read = bodyReader(app, aligned);
  const take = (request: FastifyRequest, payload: NodeJS.ReadableStream, done: BodyDone): void => {
    const problem = compressed(request);
    if (problem === undefined) read(request, payload, done);
    else done(problem);
  };
  app.addContentTypeParser("application/octet-stream", take);
  app.addContentTypeParser("*", (request, payload, done: BodyDone) => {
    if (request.headers["content-type"] === undefined) return take(request, payload, done);
    const problem = compressed(request);
    if (problem !== undefined) return done(problem);
    const message = "Send the body as application/json, or as application/octet-stream with binary tensors.";
    return done(new Problem("UNSUPPORTED_MEDIA_TYPE", message));
  });
}

/**
 * A body whose bytes after the JSON start at a multiple of 8: numbers that stand there are then read in place, and not
 * copied a second time.
 */
function aligned(pieces: readonly Buffer[], length: number, { headers }: FastifyRequest): Buffer {
  const headerBytes = Number(headers[headerLength]);
  const shift = headerBytes >= 0 && headerBytes <= length ? (8 - (headerBytes % 8)) % 8 : 0;
  if (shift === 0) return joined(pieces, length);
  // Of its own memory: tensors read in place may wait in a queue, and must not keep a shared pool alive.
  const bytes = Buffer.allocUnsafeSlow(shift + length).subarray(shift);
  let at = 0;
  for (const piece of pieces) at += piece.copy(bytes, at);
  return bytes;
}
