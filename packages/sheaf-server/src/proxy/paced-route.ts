import type { FastifyReply, FastifyRequest } from "fastify";
import type { Readable } from "node:stream";
import { BatcherError } from "sheaf";
import { callOptionsOf, type InferOptions } from "../http/call-options.ts";
import { callerOf, nameUser } from "../http/check-callers.ts";
import { clientClosedRequest, Problem, problemOf, retryIn } from "../problems/problem.ts";
import type { Settings } from "../settings/settings.ts";
import { runAs } from "../tenants/caller.ts";
import { passOn } from "./embeddings-route.ts";
import { draining } from "./key-batchers.ts";
import { readModelRequest } from "./model-request.ts";
import type { PacedKeys } from "./paced-keys.ts";
import { keyOf, upstreamUrl, withoutCaller, withoutHop } from "./target.ts";
import { UpstreamError, waitHeaders, type UpstreamHeaders } from "./upstream.ts";

/** A request to a language model: it waits for room in the limits of its key and model, and its answer passes as it comes. */
export async function answerPaced(
  request: FastifyRequest,
  reply: FastifyReply,
  { pacedKeys, base, settings }: { readonly pacedKeys: PacedKeys; readonly base: string; readonly settings: Settings },
): Promise<FastifyReply> {
  if (pacedKeys.isDraining) throw draining();
  const path = request.url.split("?", 1)[0]!;
  const isOpen = callerOf(request)?.key?.terms.opens.includes(path) === true;
  if (callerOf(request)?.isOperator === false && !isOpen)
    throw new Problem("FORBIDDEN", `${path} needs a key that has it in "opens", or one with "operator": true.`);
  const url = upstreamUrl(base, request.url);
  const announced = Number(request.headers["content-length"] ?? 0);
  const asked = await readModelRequest(request.body as Readable, announced, settings.maxBodyBytes, path);
  nameUser(request, asked.user);
  const options = callOptionsOf(request, settings, asked.priority);
  const { caller } = options;
  const headers = headersOf(request, settings);
  const { calls } = pacedKeys.of(keyOf(headers, settings), asked.model, caller);
  const paced = { ...asked, url, headers, caller };
  const run = async ({ signal, timeoutMs, priority, tag }: InferOptions): Promise<void> => {
    const answer = await calls(paced, { signal, timeoutMs, priority, tag });
    void reply
      .code(answer.status)
      .headers({ ...withoutHop(answer.headers), ...waitHeaders((name) => answer.headers[name]) });
    void reply.send(answer.body);
    // A stream's headers do not wait for its first chunk.
    setImmediate(() => {
      if (!reply.raw.headersSent && !reply.raw.destroyed) reply.raw.flushHeaders();
    });
    await answer.ended;
  };
  try {
    await runAs(options, { items: 1, weight: () => calls.weigh(paced) }, run);
    return reply;
  } catch (error) {
    if (options.signal?.aborted === true) throw clientClosedRequest();
    if (error instanceof UpstreamError) return passOn(reply, error.reply);
    throw error instanceof BatcherError && error.code === "TIMEOUT" ? full(error) : problemOf(error);
  }
}

/** Headers that are for the proxy or that it sets itself; without `accept-encoding` the answer comes uncompressed, so its usage can be read. */
const notForwarded = ["host", "content-length", "accept-encoding", "x-sheaf-priority", "x-request-timeout-ms"];

function headersOf({ headers }: FastifyRequest, settings: Settings): UpstreamHeaders {
  const sent = withoutHop(withoutCaller(headers, settings));
  const entries = Object.entries(sent).filter(([name, value]) => !notForwarded.includes(name) && value !== undefined);
  return Object.fromEntries(entries.map(([name, value]) => [name, [value].flat().join(", ")]));
}

function full(error: BatcherError): Problem {
  const headers = retryIn(Number(error.details["retryAfterMs"]));
  return new Problem("QUEUE_FULL", error.message, { status: 429, headers, cause: error });
}
