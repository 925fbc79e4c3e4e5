import { Metadata, type sendUnaryData, type ServerDuplexStream, type ServerUnaryCall } from "@grpc/grpc-js";
import type { FastifyBaseLogger } from "fastify";
import { CacheUse } from "../../../cache/cache-use.ts";
import type { Models } from "../../models/models.ts";
import type { InferOptions } from "../../../http/call-options.ts";
import type { Settings } from "../../../settings/settings.ts";
import { clientClosedRequest, invalid, Problem, problemOf } from "../../../problems/problem.ts";
import { logProblem } from "../../../observe/log.ts";
import type { RequestMetrics } from "../../../observe/request-metrics.ts";
import { requestSpans, type SpanOfRequest } from "../../../observe/tracing.ts";
import { threadTurns, tooManyBodies } from "../../../http/thread-turns.ts";
import { costs } from "../../../shared/costs.ts";
import { checkReplyBytes } from "../send-json.ts";
import { optionsOf } from "../../../http/call-options.ts";
import { isTruncated } from "../../codec/outputs.ts";
import { inferTensors } from "../kserve/infer.ts";
import { checkVersion, versionOf } from "../kserve/model.ts";
import { bytesOf } from "../kserve/tensor-data.ts";
import { rawOrContents } from "./contents.ts";
import { serviceName } from "./definition.ts";
import { inferMessage, type InferMessage } from "./infer-request.ts";
import { detailsOf, statusNameOf, statusOf } from "./status.ts";
import { keyIsGone } from "../../../tenants/caller.ts";
import { callerOf } from "./calls.ts";

export interface InferContext {
  readonly models: Models;
  readonly log: FastifyBaseLogger;
  readonly requests: RequestMetrics;
}

type Call = Pick<ServerUnaryCall<Buffer, object>, "metadata" | "getDeadline" | "getPeer">;
type Headers = Record<string, string>;

export interface Inference {
  unary(call: ServerUnaryCall<Buffer, object>, reply: sendUnaryData<object>): void;
  stream(call: ServerDuplexStream<Buffer, object>): void;
  /** Ends every stream, so that its client reconnects elsewhere. */
  close(): void;
}

export function inference(context: InferContext): Inference {
  const spanOf = requestSpans();
  const streams = new Set<() => void>();
  return {
    unary: (call, reply) => void unary(context, spanOf, call, reply),
    stream(call) {
      const end = stream(context, spanOf, call, () => streams.delete(end));
      streams.add(end);
    },
    close() {
      for (const end of streams) end();
    },
  };
}

async function unary(
  context: InferContext,
  spanOf: SpanOfRequest | undefined,
  call: ServerUnaryCall<Buffer, object>,
  reply: sendUnaryData<object>,
): Promise<void> {
  const controller = new AbortController();
  let isOver = false;
  // grpc-js also reports it after a reply.
  call.once("cancelled", () => {
    if (!isOver) controller.abort(clientClosedRequest());
  });
  const headers = headersOf(call);
  try {
    const cacheUse = context.models.settings.cacheMaxBytes > 0 ? new CacheUse() : undefined;
    const answered = await traced(spanOf, "ModelInfer", headers, () => {
      const options = optionsFor(call, headers, controller.signal);
      return inTurn(call, call.request, () =>
        infer(context.models, inferMessage(call.request), (settings) => ({ ...options(settings), cacheUse })),
      );
    });
    isOver = true;
    const trailers = new Metadata();
    if (cacheUse?.header !== undefined) trailers.set("x-sheaf-cache", cacheUse.header);
    reply(null, answered, trailers);
  } catch (error) {
    isOver = true;
    const problem = problemOf(error);
    logFailure(context, headers, problem, controller.signal);
    reply(statusOf(problem));
  }
}

/** Each message is a request of its own; replies come in their order. @returns a function that ends the stream. */
function stream(
  context: InferContext,
  spanOf: SpanOfRequest | undefined,
  call: ServerDuplexStream<Buffer, object>,
  whenEnded: () => void,
): () => void {
  const controller = new AbortController();
  const headers = headersOf(call);
  let inFlight = 0;
  let isOver = false;
  let lastReply: Promise<void> = Promise.resolve();
  const end = (problem?: Problem): void => {
    whenEnded();
    if (problem === undefined) call.end();
    else call.emit("error", statusOf(problem));
  };
  call.once("cancelled", () => {
    whenEnded();
    controller.abort(clientClosedRequest());
  });
  call.on("data", (bytes: Buffer) => {
    if (isOver) return;
    if (callerOf(call)?.isGone === true) {
      isOver = true;
      void lastReply.then(() => end(keyIsGone()));
      return;
    }
    if (++inFlight >= costs.requestsInFlightPerStream) call.pause();
    const reply = answer(bytes);
    lastReply = lastReply.then(async () => {
      const message = await reply;
      await taken(message);
      inFlight--;
      if (!controller.signal.aborted) call.resume();
    });
  });
  call.once("end", () => {
    if (!isOver) void lastReply.then(() => end());
  });
  return () => end(new Problem("DRAINING", "The server is shutting down; open a stream to another instance."));

  /** Resolves once the client's window has room, so that a client that does not read gets no further replies. */
  async function taken(message: object): Promise<void> {
    if (controller.signal.aborted) return;
    const unread = new Problem("REQUEST_TIMEOUT", `The client read no reply for ${costs.replyMs} ms.`);
    const timer = setTimeout(() => end(unread), costs.replyMs);
    await new Promise<void>((resolve) => void call.write(message, () => resolve()));
    clearTimeout(timer);
  }

  async function answer(bytes: Buffer): Promise<object> {
    const startedAtMs = performance.now();
    let status = "OK";
    let message: InferMessage | undefined;
    try {
      return await traced(spanOf, "ModelStreamInfer", headers, async () => {
        const answered = inTurn(call, bytes, () => {
          message = inferMessage(bytes);
          return infer(context.models, message, optionsFor(call, headers, controller.signal));
        });
        return { error_message: "", infer_response: await answered };
      });
    } catch (error) {
      const problem = problemOf(error);
      status = controller.signal.aborted ? "CANCELLED" : statusNameOf(problem);
      logFailure(context, headers, problem, controller.signal);
      const id = ((message?.header["id"] ?? "") as string).slice(0, costs.idLength);
      return { error_message: detailsOf(problem), infer_response: { model_name: message?.model, id } };
    } finally {
      context.requests.record(`/${serviceName}/ModelStreamInfer`, status, performance.now() - startedAtMs);
    }
  }
}

/** Stands for all callers if they are not distinguished: a call does not know its connection. */
const everyone = {};

/** Reads a large message when it is its caller's turn. */
function inTurn(call: Call, bytes: Buffer, read: () => Promise<object>): Promise<object> {
  if (bytes.length < costs.largeBytes) return read();
  const account = callerOf(call)?.tenant ?? everyone;
  if (!threadTurns.hasRoom(account)) throw tooManyBodies();
  return threadTurns.run(account, read);
}

/** A parameter of Triton's streams, which perf_analyzer always sends. Every reply here is the last of its request. */
const askFinal = "triton_enable_empty_final_response";

async function infer(
  models: Models,
  { model: name, version, header: given, raw }: InferMessage,
  options: (settings: Settings) => InferOptions,
): Promise<object> {
  const model = models.take(name, "model_name");
  checkVersion(name, model, version || undefined);
  const { [askFinal]: asksFinal = false, ...parameters } = (given["parameters"] ?? {}) as Record<string, unknown>;
  if (typeof asksFinal !== "boolean") throw invalid(`parameters.${askFinal}`, "true or false", asksFinal);
  const header = { ...given, parameters };
  const inputs = given["inputs"] as readonly unknown[];
  const request = { header, isBinary: true, ...rawOrContents(raw, inputs) };
  const asked = options(model.settings);
  const { id, outputs, results } = await inferTensors(model, request, asked);
  const contents = outputs.map(({ value }) => bytesOf(value.data));
  checkReplyBytes(contents.reduce((sum, { length }) => sum + length, 0), model.settings); // prettier-ignore
  const truncated = results.filter(isTruncated).length;
  const lane = asked.caller?.loweredTo;
  return {
    model_name: model.name,
    model_version: versionOf(model),
    id: id ?? "",
    parameters: {
      ...(asksFinal && { triton_final_response: { bool_param: true } }),
      // As the headers of HTTP: texts that were cut, and the lane that the request was lowered to.
      ...(truncated > 0 && { x_sheaf_truncated: { int64_param: truncated } }),
      ...(lane !== undefined && { x_sheaf_priority: { string_param: lane } }),
    },
    outputs: outputs.map(({ value }) => ({ name: value.name, datatype: value.datatype, shape: value.shape })),
    raw_output_contents: contents,
  };
}

/** The texts of a call's metadata, by name. */
const headersOf = ({ metadata }: Call): Headers =>
  Object.fromEntries(Object.entries(metadata.getMap()).filter((entry): entry is [string, string] => typeof entry[1] === "string")); // prettier-ignore

/** The options in the metadata, with a timeout no longer than gRPC's own deadline. */
const optionsFor =
  (call: Call, headers: Headers, signal: AbortSignal) =>
  (settings: Settings): InferOptions => {
    const caller = callerOf(call)?.again();
    const options = {
      ...optionsOf(headers, signal, settings, (header) => `metadata ${header.toLowerCase()}`),
      ...(caller !== undefined && { caller }),
      // Each call has a signal of its own.
      sender: call.getPeer(),
    };
    const leftMs = Number(call.getDeadline()) - Date.now();
    return leftMs < options.timeoutMs ? { ...options, timeoutMs: Math.max(1, leftMs) } : options;
  };

async function traced(
  spanOf: SpanOfRequest | undefined,
  method: string,
  headers: Headers,
  run: () => Promise<object>,
): Promise<object> {
  const attributes = { "rpc.system": "grpc", "rpc.service": serviceName, "rpc.method": method };
  const span = spanOf?.(`${serviceName}/${method}`, headers, attributes, 0);
  if (span === undefined) return run();
  try {
    const answered = await span.run(run);
    span.end({ "rpc.grpc.status_code": 0 }, false);
    return answered;
  } catch (error) {
    const problem = problemOf(error);
    span.end({ "rpc.grpc.status_code": statusOf(problem).code }, problem.status >= 500);
    throw error;
  }
}

/** A call that its client cancelled did not fail. */
function logFailure({ log }: InferContext, headers: Headers, problem: Problem, signal: AbortSignal): void {
  const shown = signal.aborted ? clientClosedRequest() : problem;
  logProblem({ id: headers["x-request-id"] ?? "", headers, log }, shown);
}
