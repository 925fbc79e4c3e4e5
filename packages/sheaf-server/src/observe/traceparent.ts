import type { FastifyRequest } from "fastify";

const traceparentPattern = /^[\da-f]{2}-([\da-f]{32})-[\da-f]{16}-[\da-f]{2}/;

/** Later versions of the standard may add to it. */
const longestTraceparent = 200;

/** The trace id of a request that came with a valid `traceparent`. */
export function traceIdOf({ headers }: Pick<FastifyRequest, "headers">): string | undefined {
  const id = traceparentPattern.exec(String(headers.traceparent ?? ""))?.[1];
  return id === undefined || /^0+$/.test(id) ? undefined : id;
}

export function traceparentOf(request: Pick<FastifyRequest, "headers">): string | undefined {
  const { traceparent } = request.headers;
  if (typeof traceparent !== "string" || traceparent.length > longestTraceparent) return undefined;
  return traceIdOf(request) === undefined ? undefined : traceparent;
}
