import type { Responder } from "./responder.ts";
import type { ChunkSource } from "../shared/bounded-text.ts";

export interface FastifyRequestLike {
  readonly method: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The body as a preParsing hook (decompression) left it. */
  readonly body: unknown;
  readonly raw: AsyncIterable<Uint8Array>;
}

export interface FastifyReplyLike {
  readonly raw: { readonly writableFinished: boolean; once(event: "close", listener: () => void): unknown };
  code(status: number): unknown;
  headers(headers: Record<string, string>): unknown;
  hijack(): unknown;
  send(body: string): unknown;
}

/** The part of a Fastify instance that is used; version 4 and 5 have it. */
export interface FastifyLike {
  removeAllContentTypeParsers(): unknown;
  addContentTypeParser(
    type: string,
    parser: (request: unknown, payload: unknown, done: (error: Error | null, body?: unknown) => void) => void,
  ): unknown;
  addHook(name: "onClose", hook: () => Promise<void>): unknown;
  route(options: {
    method: "POST";
    url: string;
    handler: (request: FastifyRequestLike, reply: FastifyReplyLike) => Promise<unknown>;
  }): unknown;
}

/** A route in its own scope. The body is read here, so that every framework answers an invalid one alike. */
export function fastifyPlugin(
  responder: Responder,
  close: () => Promise<void>,
): (app: FastifyLike, options: { readonly url?: string | undefined }) => Promise<void> {
  return async (app, { url = "/" }) => {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
    app.addHook("onClose", close);
    app.route({ method: "POST", url, handler: (request, reply) => respond(responder, request, reply) });
  };
}

async function respond(responder: Responder, request: FastifyRequestLike, reply: FastifyReplyLike): Promise<unknown> {
  const gone = new AbortController();
  reply.raw.once("close", () => {
    if (!reply.raw.writableFinished) gone.abort(new Error("The client has left."));
  });
  const { headers } = request;
  const result = await responder({
    method: request.method,
    contentType: headers["content-type"]?.toString() ?? null,
    contentLength: headers["content-length"]?.toString() ?? null,
    body: sourceOf(isStream(request.body) ? request.body : request.raw),
    signal: gone.signal,
  });
  if (result === undefined) return reply.hijack();
  reply.code(result.status);
  reply.headers(result.headers);
  return reply.send(result.body);
}

const isStream = (value: unknown): value is AsyncIterable<Uint8Array> =>
  typeof (value as Partial<AsyncIterable<unknown>> | null | undefined)?.[Symbol.asyncIterator] === "function";

/** Read by hand, not with `for await`: leaving that early would destroy the socket before the reply says why. */
function sourceOf(stream: AsyncIterable<Uint8Array>): ChunkSource {
  const chunks = stream[Symbol.asyncIterator]();
  return { next: () => chunks.next() as ReturnType<ChunkSource["next"]> };
}
