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

/**
 * Server errors are logged with their cause, one line a second for each code: a request of 24 bytes can cause one. The others,
 * whole messages and the caller's mistakes are in the log with LOG_LEVEL debug.
 */
export function logProblem(request: Pick<FastifyRequest, "id" | "headers" | "log">, problem: Problem): void {
  const { id: reqId, log } = request;
  const { code, status, message } = problem;
  const line = { reqId, code, status, traceId: traceIdOf(request) };
  const error = problem.cause ?? problem;
  if (status < 500 || code === "DRAINING" || code === "NOT_READY") return log.debug(line, message);
  if (log.level === "debug" || log.level === "trace") return log.error({ ...line, err: error }, message);
  const lines = recent.get(log) ?? new Map<string, { more: number }>();
  recent.set(log, lines);
  const held = lines.get(code);
  if (held !== undefined) return void held.more++;
  log.error({ ...line, err: shortened(error) }, cut(message));
  const since = { more: 0 };
  lines.set(code, since);
  setTimeout(() => {
    lines.delete(code);
    if (since.more > 0) log.error({ code, more: since.more }, `${since.more} more of ${code} within a second`);
  }, 1000).unref();
}

/** Of each code that was logged within the last second, how many lines were left out. */
const recent = new WeakMap<object, Map<string, { more: number }>>();
/** Stacks that the log has. */
const loggedStacks = new Set<string>();
const mostStacks = 100;
const longestMessage = 300;

const cut = (text: string): string => (text.length > longestMessage ? `${text.slice(0, longestMessage)}…` : text);

/** An error without most of its message, and with its stack once. */
function shortened(error: unknown): object {
  if (!(error instanceof Error)) return { message: cut(String(error)) };
  const { name, message, stack = "" } = error;
  const frames = stack.slice(Math.max(0, stack.indexOf("\n    at "))).slice(0, 4000);
  const isNew = !loggedStacks.has(frames);
  if (loggedStacks.size >= mostStacks) loggedStacks.clear();
  loggedStacks.add(frames);
  return { type: name, message: cut(message), ...(isNew && { stack: frames }) };
}
