import type { FastifyBaseLogger, FastifyRequest } from "fastify";
import type { MeasuredBatcher } from "sheaf/metrics";
import type { WorkerLogLine } from "sheaf/node";
import { uncachedReason } from "../server/models/uncached-reason.ts";
import type { Deployment } from "../server/models/deployment.ts";
import type { Problem } from "../problems/problem.ts";

const traceparentPattern = /^[\da-f]{2}-([\da-f]{32})-[\da-f]{16}-[\da-f]{2}/;

/** Later versions of the standard may add to it. */
const longestTraceparent = 200;

/** The trace id of a request that came with a valid `traceparent`. */
export function traceIdOf({ headers }: Pick<FastifyRequest, "headers">): string | undefined {
  const id = traceparentPattern.exec(String(headers.traceparent ?? ""))?.[1];
  return id === undefined || /^0+$/.test(id) ? undefined : id;
}

/** A valid `traceparent`, as it came. */
export function traceparentOf(request: Pick<FastifyRequest, "headers">): string | undefined {
  const { traceparent } = request.headers;
  if (typeof traceparent !== "string" || traceparent.length > longestTraceparent) return undefined;
  return traceIdOf(request) === undefined ? undefined : traceparent;
}

/** One line per failed batch and per worker that is replaced, and with LOG_LEVEL debug one per batch; never one per item. */
export function logModel(log: FastifyBaseLogger, deployment: Deployment): () => void {
  const { name } = deployment;
  const ends = [
    logBatches(log, name, deployment),
    deployment.onVersion(({ definition, settings, workers }) => {
      const { warning } = definition;
      if (warning !== undefined) log.warn({ model: name }, warning);
      const reason = settings.cacheMaxBytes > 0 ? uncachedReason(definition, settings) : undefined;
      if (reason !== undefined) log.warn({ model: name }, `its results are not cached: ${reason}`);
      workers?.onInstance(({ instance: { id, state }, why }) => {
        if (why !== undefined) log.warn({ model: name, worker: id, state }, why);
      });
    }),
    deployment.onLoad((error, version) => {
      if (version === undefined) log.error({ model: name, err: error }, "model failed to load");
      else log.info({ model: name, note: version.definition.note }, "model is ready");
    }),
  ];
  return () => ends.forEach((end) => end());
}

/** What a model's own program prints and logs. */
export function modelOutput(log: FastifyBaseLogger, name: string): (line: WorkerLogLine) => void {
  const levelOf = { debug: "debug", info: "info", warning: "warn", error: "error" } as const;
  return ({ level, text, pid }) => log[levelOf[level]]({ model: name, workerPid: pid }, text);
}

/** One line per failed batch, and with LOG_LEVEL debug one per batch. */
export function logBatches(
  log: FastifyBaseLogger,
  name: string,
  batcher: Pick<MeasuredBatcher, "subscribe">,
): () => void {
  return batcher.subscribe(({ batchId, reason, size, queueWaitMs, runMs, outcome, errorCode }) => {
    const level = outcome === "error" ? "warn" : "debug";
    const line = { model: name, batchId, reason, size, queueWaitMs: queueWaitMs.mean, runMs, errorCode };
    log[level](line, outcome === "error" ? "batch failed" : "batch");
  });
}

/** Server errors are logged with their cause; what the caller did wrong only with LOG_LEVEL debug. */
export function logProblem(request: Pick<FastifyRequest, "id" | "headers" | "log">, problem: Problem): void {
  const line = { reqId: request.id, code: problem.code, status: problem.status, traceId: traceIdOf(request) };
  if (problem.status < 500 || problem.code === "DRAINING" || problem.code === "NOT_READY")
    request.log.debug(line, problem.message);
  else request.log.error({ ...line, err: problem.cause ?? problem }, problem.message);
}
