import replyFrom from "@fastify/reply-from";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { InFlightReplies } from "../http/lifecycle/in-flight-replies.ts";
import { callerOf } from "../http/check-callers.ts";
import { clientClosedRequest, Problem } from "../problems/problem.ts";
import { runTimeoutOf, type Settings } from "../settings/settings.ts";
import { draining, type KeyBatchers } from "./key-batchers.ts";
import { namedByConnection, upstreamUrl, withoutCaller } from "./target.ts";
import { unreachable, waitHeaders } from "./upstream.ts";

/**
 * Every other route goes to the upstream unchanged, streams included, and nothing is repeated.
 * @returns its replies that are not finished.
 */
export async function passThrough(
  app: FastifyInstance,
  {
    keyBatchers,
    base,
    settings,
  }: { readonly keyBatchers: KeyBatchers; readonly base: string; readonly settings: Settings },
): Promise<InFlightReplies> {
  const open = new InFlightReplies(app);
  await app.register(replyFrom, {
    base: new URL(base).origin,
    // It would log where requests go, query and all.
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
  // Not read here: a body goes through as a stream.
  app.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
  // With CORS_ORIGINS the answer to a preflight is the proxy's own.
  const method = app.supportedMethods.filter((name) => name !== "OPTIONS" || settings.corsOrigins.length === 0);
  const passOn = (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    if (keyBatchers.isDraining) throw draining();
    // The upstream's key opens more than embeddings.
    if (callerOf(request)?.isOperator === false)
      throw new Problem("FORBIDDEN", 'Only embeddings are for every key; other routes need one with "operator": true.');
    const { pathname, search } = new URL(upstreamUrl(base, request.url));
    try {
      void reply.from(pathname, {
        queryString: () => search.slice(1),
        rewriteRequestHeaders: (_request, headers) => withoutHop(withoutCaller(headers, settings)),
        rewriteHeaders: (headers) => ({ ...withoutHop(headers), ...waitHeaders((name) => headers[name]) }),
        onError: (inner, { error }) => void inner.send(problemOfLoss(error, request, settings)),
      });
    } catch (error) {
      // Nothing was sent: reply-from takes no path that may still climb when it is decoded, such as `..%2f`.
      throw new Problem("BAD_REQUEST", "The path must not contain .., encoded or not.", { cause: error });
    }
    return reply;
  };
  app.route({ method, url: "/*", handler: passOn, logLevel: quieter(settings) });
  return open;
}

/** Of one connection; the next one has its own. `expect` was answered here. */
const ofOneHop = [
  "connection", "expect", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
  "transfer-encoding", "upgrade",
]; // prettier-ignore

/** Passed on, `connection: close` of the upstream would end the client's connection, and `keep-alive` would keep it. */
function withoutHop<T>(headers: Readonly<Record<string, T>>): Record<string, T> {
  const named = namedByConnection(headers["connection"]);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !ofOneHop.includes(name) && !named.has(name)));
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

/** reply-from warns of every request that ends early, also where the client hung up; the proxy has its own line. */
const quieter = ({ logLevel }: Settings): Settings["logLevel"] =>
  logLevel === "silent" || logLevel === "fatal" ? logLevel : "error";
