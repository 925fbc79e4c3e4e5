import replyFrom from "@fastify/reply-from";
import type { FastifyInstance } from "fastify";
import type { Settings } from "../server/settings.ts";
import { draining, type Lanes } from "./lanes.ts";
import { upstreamUrl } from "./target.ts";
import { unreachable } from "./upstream.ts";

/** Every route that is not the proxy's own goes to the upstream as it came, streams included, and nothing is repeated. */
export async function passThrough(
  app: FastifyInstance,
  { lanes, base, settings }: { readonly lanes: Lanes; readonly base: string; readonly settings: Settings },
): Promise<void> {
  await app.register(replyFrom, {
    base: new URL(base).origin,
    // It would log where requests go, query and all.
    disableRequestLogging: true,
    retryMethods: [],
    maxRetriesOn503: 0,
    undici: {
      connections: null,
      headersTimeout: settings.runTimeoutMs,
      bodyTimeout: settings.runTimeoutMs,
    } as object,
  });
  app.removeAllContentTypeParsers();
  // Not read here: a body goes through as a stream.
  app.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
  app.all("/*", (request, reply) => {
    if (lanes.isDraining) throw draining();
    const url = new URL(upstreamUrl(base, request.url));
    void reply.from(url.pathname + url.search, {
      onError: (inner, { error }) => void inner.send(unreachable(error)),
    });
    return reply;
  });
}
