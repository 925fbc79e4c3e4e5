import replyFrom from "@fastify/reply-from";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { InFlightReplies } from "../http/lifecycle/in-flight-replies.ts";
import { callerOf } from "../http/check-callers.ts";
import { clientClosedRequest, Problem } from "../problems/problem.ts";
import { runTimeoutOf, type Settings } from "../settings/settings.ts";
import { draining, type KeyBatchers } from "./key-batchers.ts";
import type { PacedKeys } from "./paced-keys.ts";
import { answerPaced } from "./paced-route.ts";
import { upstreamUrl, withoutCaller, withoutHop } from "./target.ts";
import { pacedPaths } from "../tenants/keys-file.ts";
import { unreachable, waitHeaders } from "./upstream.ts";

/**
 * Forwards every other route to the upstream unchanged, streams included; nothing is retried.
 * @returns its replies that are not finished.
 */
export async function passThrough(
  app: FastifyInstance,
  parts: {
    readonly keyBatchers: KeyBatchers;
    readonly pacedKeys: PacedKeys;
    readonly base: string;
    readonly settings: Settings;
  },
): Promise<InFlightReplies> {
  const { keyBatchers, base, settings } = parts;
  const open = new InFlightReplies(app);
  await app.register(replyFrom, {
    base: new URL(base).origin,
    // Its logging would include the query.
    disableRequestLogging: true,
    retryMethods: [],
    maxRetriesOn503: 0,
    undici: {
      connections: null,
      headersTimeout: runTimeoutOf(settings),
      bodyTimeout: runTimeoutOf(settings),
    } as object,
  });
  app.removeAllContentTypeParsers();
  // Bodies pass through as streams.
  app.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
  // With CORS_ORIGINS the answer to a preflight is the proxy's own.
  const method = app.supportedMethods.filter((name) => name !== "OPTIONS" || settings.corsOrigins.length === 0);
  const passOn = (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    if (keyBatchers.isDraining) throw draining();
    // The upstream's key allows more than embeddings.
    if (callerOf(request)?.isOperator === false)
      throw new Problem(
        "FORBIDDEN",
        'Only embeddings are for every key; other routes need one with "operator": true, or language models one that "opens" them.',
      );
    const { pathname, search } = new URL(upstreamUrl(base, request.url));
    try {
      void reply.from(pathname, {
        queryString: () => search.slice(1),
        rewriteRequestHeaders: (_request, headers) => withoutHop(withoutCaller(headers, settings)),
        rewriteHeaders: (headers) => ({ ...withoutHop(headers), ...waitHeaders((name) => headers[name]) }),
        onError: (inner, { error }) => void inner.send(problemOfLoss(error, request, settings)),
      });
    } catch (error) {
      // Nothing was sent: reply-from refuses paths that could still climb once decoded, such as `..%2f`.
      throw new Problem("BAD_REQUEST", "The path must not contain .., encoded or not.", { cause: error });
    }
    return reply;
  };
  for (const path of pacedPaths)
    app.post(path, { logLevel: quieter(settings) }, (request, reply) =>
      // The router also takes a slash at the end.
      request.url.split("?", 1)[0] === path ? answerPaced(request, reply, parts) : passOn(request, reply),
    );
  app.route({ method, url: "/*", handler: passOn, logLevel: quieter(settings) });
  return open;
}

function problemOfLoss(error: Error, { raw }: FastifyRequest, settings: Settings): Problem {
  if (raw.socket.destroyed) return clientClosedRequest();
  if ((error.cause as { code?: unknown } | undefined)?.code === "UND_ERR_HEADERS_TIMEOUT")
    return new Problem(
      "RUN_TIMEOUT",
      `The upstream did not answer within ${runTimeoutOf(settings)} ms (RUN_TIMEOUT_MS).`,
    );
  return unreachable(error);
}

/** reply-from warns about every request that ends early, even if the client hung up; the proxy has its own log line. */
const quieter = ({ logLevel }: Settings): Settings["logLevel"] =>
  logLevel === "silent" || logLevel === "fatal" ? logLevel : "error";
