import type { FastifyReply, FastifyRequest } from "fastify";
import { BatcherError, type CallOptions } from "sheaf";
import { namedInput, type EmbeddingPart } from "sheaf/internal/openai";
import { exactJsonOf } from "../http/bodies/body.ts";
import { callOptionsOf, type InferOptions } from "../http/call-options.ts";
import { nameUser } from "../http/check-callers.ts";
import { traceIdOf } from "../observe/traceparent.ts";
import { clientClosedRequest, invalid, messageOf, Problem, problemOf } from "../problems/problem.ts";
import { problemFor } from "../http/replies.ts";
import type { Settings } from "../settings/settings.ts";
import { batchableRequest, type BatchableRequest } from "./embeddings-request.ts";
import { routed, type KeyBatcher } from "./key-batcher.ts";
import { draining, type KeyBatchers } from "./key-batchers.ts";
import { keyOf, upstreamHeaders, upstreamUrl } from "./target.ts";
import { runAs } from "../tenants/caller.ts";
import { post, UpstreamError, waitHeaders, type UpstreamReply } from "./upstream.ts";

type Settled = PromiseSettledResult<EmbeddingPart>[];

/** `POST …/embeddings`: inputs of many requests share a few requests to the upstream. */
export async function answerEmbeddings(
  request: FastifyRequest,
  reply: FastifyReply,
  {
    keyBatchers,
    base,
    settings,
  }: { readonly keyBatchers: KeyBatchers; readonly base: string; readonly settings: Settings },
): Promise<FastifyReply> {
  if (keyBatchers.isDraining) throw draining();
  // Exact, or the upstream would get a different request than the caller sent, and the cache would use one key for both.
  const { json } = exactJsonOf(request.body);
  const batchable = batchableRequest(json);
  nameUser(request, batchable?.calls[0]!.parameters["user"]);
  const options = callOptionsOf(request, settings, batchable?.priority);
  if (batchable === undefined) {
    const url = upstreamUrl(base, request.url);
    const load = { items: 1, weight: () => 1 };
    return passOn(reply, await runAs(options, load, (asked) => alone(request, url, asked, settings)));
  }
  const { model, calls } = batchable;
  if (calls.length > settings.maxInputs)
    throw invalid("input", `an array of at most ${settings.maxInputs} inputs (MAX_INPUTS)`, calls);
  const headers = upstreamHeaders(request.headers, settings);
  const keyBatcher = keyBatchers.of(keyOf(headers, settings), model, options.caller);
  const load = { items: calls.length, weight: () => calls.reduce((sum, call) => sum + keyBatcher.weigh(call), 0) };
  const routedCalls = routed(calls, { url: upstreamUrl(base, request.url), headers });
  const run = (asked: InferOptions): Promise<Settled> => keyBatcher.settle(routedCalls, asked);
  const outcomes = await runAs(options, load, run, (all) => all).catch((error: unknown) => {
    throw problemFor(error, keyBatcher, options.caller?.tenant);
  });
  void reply.headers(keyBatcher.limitHeaders);
  const failedAt = outcomes.findIndex(({ status }) => status === "rejected");
  if (failedAt < 0) return reply.send(bodyOf(outcomes.map((outcome) => (outcome as { value: EmbeddingPart }).value)));
  const { reason } = outcomes[failedAt] as PromiseRejectedResult;
  if (!(reason instanceof UpstreamError)) throw problemOfCall(reason, keyBatcher, options);
  // At debug, one line per caller; the batch has its own line at a visible level.
  request.log.debug({ reqId: request.id, status: reason.status, traceId: traceIdOf(request) }, "the upstream refused");
  return passOn(reply, renamed(reason, failedAt, batchable));
}

/** Forwards a body that cannot share a request, so that the upstream answers it. */
async function alone(
  { headers, body }: FastifyRequest,
  url: string,
  { signal, timeoutMs }: CallOptions,
  settings: Settings,
): Promise<UpstreamReply> {
  const timeout = AbortSignal.timeout(timeoutMs!);
  const either = AbortSignal.any([signal!, timeout]);
  try {
    const { maxReplyBytes } = settings;
    return await post(url, upstreamHeaders(headers, settings), String(body), { signal: either, maxReplyBytes });
  } catch (error) {
    if (signal!.aborted) throw clientClosedRequest();
    if (timeout.aborted) throw new Problem("TIMEOUT", `The upstream did not answer within ${timeoutMs} ms.`);
    throw error;
  }
}

/** Passes the upstream's refusal of one input on to its caller. */
export function passOn(reply: FastifyReply, { status, contentType, headers, text }: UpstreamReply): FastifyReply {
  const authenticate = headers.get("www-authenticate");
  if (authenticate !== null) void reply.header("www-authenticate", authenticate);
  void reply.headers(waitHeaders((name) => headers.get(name)));
  return reply.code(status).type(contentType).send(text);
}

/** Translates the batch's index: `input[37]` of the batch is `input[0]`, or `input`, to its caller. */
function renamed(error: UpstreamError, index: number, { isSingle }: BatchableRequest): UpstreamReply {
  const { reply } = error;
  const named = namedInput(error);
  if (named === undefined) return reply;
  const own = isSingle ? "input" : `input[${index}]`;
  const name = new RegExp(`input(?:\\[${named}\\]|\\.${named}(?!\\d))`, "g");
  return { ...reply, text: reply.text.replaceAll(name, own) };
}

/** The reply in the shape of the upstream's, with the caller's inputs only. */
function bodyOf(parts: readonly EmbeddingPart[]): Record<string, unknown> {
  const { usage: upstreamUsage, ...envelope } = parts[0]!.reply;
  const tokens = parts.reduce((sum, part) => sum + (part.tokens ?? 0), 0);
  const isCounted = upstreamUsage !== undefined && Number.isFinite(tokens);
  const usage = isCounted ? { prompt_tokens: tokens, total_tokens: tokens } : undefined;
  const data = parts.map(({ embedding }, index) => ({ object: "embedding", index, embedding }));
  return { object: "list", ...envelope, data, usage };
}

function problemOfCall(error: unknown, keyBatcher: KeyBatcher, { signal, caller }: InferOptions): Problem {
  if (signal?.aborted === true) return clientClosedRequest();
  const isKnown = error instanceof Problem || error instanceof BatcherError;
  if (isKnown && error.code !== "RESULT_COUNT")
    return error.code === "QUEUE_FULL" ? problemFor(error, keyBatcher, caller?.tenant) : problemOf(error);
  return new Problem("UPSTREAM_ERROR", messageOf(error), { cause: error });
}
