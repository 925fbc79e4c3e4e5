import type { FastifyInstance, FastifyRequest } from "fastify";
import { compressed } from "../../http/body.ts";
import { Problem } from "../../http/problem.ts";

/** Of the JSON that stands before the bytes of tensors. */
export const headerLength = "inference-header-content-length";

type Done = (error: Error | null, body?: Buffer) => void;

/** Bodies of the binary extension, whose clients name their type or none. */
export function takeBinary(app: FastifyInstance): void {
  app.addContentTypeParser("application/octet-stream", readAligned);
  app.addContentTypeParser("*", (request, payload, done: Done) => {
    if (request.headers["content-type"] === undefined) return readAligned(request, payload, done);
    const problem = compressed(request);
    if (problem !== undefined) return done(problem);
    const message = "Send the body as application/json, or as application/octet-stream with binary tensors.";
    return done(new Problem("UNSUPPORTED_MEDIA_TYPE", message));
  });
}

/**
 * Reads a body into one buffer, placed so that the bytes after the JSON start at a multiple of 8: numbers that stand
 * there are then read in place, and not copied a second time.
 */
function readAligned(request: FastifyRequest, payload: NodeJS.ReadableStream, done: Done): void {
  const problem = compressed(request);
  if (problem !== undefined) return done(problem);
  const { bodyLimit } = request.routeOptions;
  const tooLarge = (): Problem =>
    new Problem("BODY_TOO_LARGE", `The body is larger than ${bodyLimit} bytes (MAX_BODY_BYTES).`);
  const announced = Number(request.headers["content-length"]);
  if (announced > bodyLimit) return done(tooLarge());
  const chunks: Buffer[] = [];
  let received = 0;
  let isOver = false;
  const end = (error: Error | null, body?: Buffer): void => {
    if (isOver) return;
    isOver = true;
    done(error, body);
  };
  payload.on("data", (chunk: Buffer) => {
    received += chunk.length;
    if (received > bodyLimit) end(tooLarge());
    else if (!isOver) chunks.push(chunk);
  });
  payload.on("error", end);
  payload.on("end", () => {
    if (announced >= 0 && received !== announced)
      return end(new Problem("BAD_REQUEST", `The body has ${received} bytes; content-length says ${announced}.`));
    return end(null, aligned(chunks, received, Number(request.headers[headerLength])));
  });
}

function aligned(chunks: readonly Buffer[], length: number, headerBytes: number): Buffer {
  const shift = headerBytes >= 0 && headerBytes <= length ? (8 - (headerBytes % 8)) % 8 : 0;
  // Of its own memory: what is read in place may wait in a queue, and must not keep a shared pool alive.
  const bytes = Buffer.allocUnsafeSlow(shift + length).subarray(shift);
  let at = 0;
  for (const chunk of chunks) at += chunk.copy(bytes, at);
  return bytes;
}
