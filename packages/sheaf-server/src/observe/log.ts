import type { FastifyBaseLogger, FastifyRequest } from "fastify";
import type { MeasuredBatcher } from "sheaf/internal/metrics";
import type { WorkerLogLine } from "sheaf/internal/node";
import type { Problem } from "../problems/problem.ts";
import { traceIdOf } from "./traceparent.ts";

/** The output and log of a model's own program. */
export function modelOutput(log: FastifyBaseLogger, name: string): (line: WorkerLogLine) => void {
  const levelOf = { debug: "debug", info: "info", warning: "warn", error: "error" } as const;
  return ({ level, text, pid }) => log[levelOf[level]]({ model: name, workerPid: pid }, text);
}

/** One line per batch that failed, as a whole or in part, and with LOG_LEVEL debug one per batch. */
export function logBatches(
  log: FastifyBaseLogger,
  name: string,
  batcher: Pick<MeasuredBatcher, "subscribe">,
): () => void {
  return batcher.subscribe(
    ({ batchId, reason, size, queueWaitMs, runMs, outcome, failedItems, extraRuns, errorCode }) => {
      const level = outcome === "error" || outcome === "partial" ? "warn" : "debug";
      if (level === "debug" && log.level !== "debug" && log.level !== "trace") return;
      const facts = { model: name, batchId, reason, size, queueWaitMs: queueWaitMs.mean, runMs };
      const text = { ok: "batch", refused: "batch", partial: "batch failed in part", error: "batch failed" }[outcome];
      log[level]({ ...facts, failedItems, extraRuns, errorCode }, text);
    },
  );
}

/** Server errors are logged with their cause; the caller's mistakes only with LOG_LEVEL debug. */
export function logProblem(request: Pick<FastifyRequest, "id" | "headers" | "log">, problem: Problem): void {
  const line = { reqId: request.id, code: problem.code, status: problem.status, traceId: traceIdOf(request) };
  if (problem.status < 500 || problem.code === "DRAINING" || problem.code === "NOT_READY")
    request.log.debug(line, problem.message);
  else request.log.error({ ...line, err: problem.cause ?? problem }, problem.message);
}
