import replyFrom from "@fastify/reply-from";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { OpenReplies } from "../server/open-replies.ts";
import type { Settings } from "../server/settings.ts";
import { draining, type Lanes } from "./lanes.ts";
import { upstreamUrl } from "./target.ts";
import { unreachable } from "./upstream.ts";

/**
 * Every route that is not the proxy's own goes to the upstream as it came, streams included, and nothing is repeated.
 * @returns its replies that are not finished.
 */
export async function passThrough(
  app: FastifyInstance,
  { lanes, base, settings }: { readonly lanes: Lanes; readonly base: string; readonly settings: Settings },
): Promise<OpenReplies> {
  const open = new OpenReplies(app);
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
  // With CORS_ORIGINS the answer to a preflight is the proxy's own.
  const method = app.supportedMethods.filter((name) => name !== "OPTIONS" || settings.corsOrigins.length === 0);
  const passOn = (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    if (lanes.isDraining) throw draining();
    const url = new URL(upstreamUrl(base, request.url));
    void reply.from(url.pathname + url.search, {
      onError: (inner, { error }) => void inner.send(unreachable(error)),
    });
    return reply;
  };
  app.route({ method, url: "/*", handler: passOn });
  return open;
}
