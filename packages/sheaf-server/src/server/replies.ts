import type { FastifyReply } from "fastify";
import { BatcherError } from "sheaf";
import type { ServedModel } from "./served-model.ts";
import { Problem, problemBody, problemOf } from "./problem.ts";

/** Answers with a problem document; on `/v2` as the Open Inference Protocol has it. */
export function sendProblem(reply: FastifyReply, problem: Problem): void {
  if (/^\/v2(?:[/?]|$)/.test(reply.request.url)) {
    void reply.code(problem.status).headers(problem.headers).type("application/json");
    void reply.send(JSON.stringify({ error: problem.message }));
    return;
  }
  void reply
    .code(problem.status)
    .headers(problem.headers)
    .type("application/problem+json")
    .send(JSON.stringify(problemBody(problem, reply.request.id)));
}

/** What refuses a request when its queue is full. */
export type Queue = Pick<ServedModel, "name" | "waiting" | "drainMs" | "settings">;

/** The problem a request ends with; a full queue says when to come back, in the words of this server's settings. */
export function problemFor(error: unknown, { name, waiting, drainMs, settings }: Queue): Problem {
  if (!(error instanceof BatcherError) || error.code !== "QUEUE_FULL") return problemOf(error);
  const { queueMaxSize, queueFullStatus: status } = settings;
  const { expectedMs, timeoutMs } = error.details as { readonly expectedMs?: number; readonly timeoutMs?: number };
  const reason =
    expectedMs === undefined
      ? `The queue of ${name} is full: ${waiting} items wait (QUEUE_MAX_SIZE ${queueMaxSize}).`
      : `The queue of ${name} is too long for a deadline of ${timeoutMs} ms: a result is expected after ${Math.ceil(expectedMs)} ms.`;
  const message = `${reason} Retry in ${drainMs} ms.`;
  const headers = { "retry-after": String(Math.ceil(drainMs / 1000)), "retry-after-ms": String(drainMs) };
  return new Problem("QUEUE_FULL", message, { status, headers, cause: error });
}
