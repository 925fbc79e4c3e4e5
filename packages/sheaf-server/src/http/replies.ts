import type { FastifyReply } from "fastify";
import { BatcherError } from "sheaf";
import { Problem, problemOf, retryIn } from "../problems/problem.ts";
import { errorDocument, errorFormOf } from "../problems/error-forms.ts";
import { withoutStack } from "../problems/without-stack.ts";
import { RetryTimes } from "./retry-times.ts";
import type { Settings } from "../settings/settings.ts";

/** Answers with an error in the form that the clients of its route read. */
export function sendProblem(reply: FastifyReply, problem: Problem): void {
  const { request, server } = reply;
  const { type, body } = errorDocument(problem, errorFormOf(request.url.slice(server.prefix.length)), request.id);
  void reply.code(problem.status).headers(problem.headers).type(type).send(body);
}

export interface Queue {
  readonly name: string;
  readonly settings: Settings;
}

interface Refusal {
  readonly queued?: number;
  /** The tenant whose room is full, and its waiting items; undefined if the whole queue is full. */
  readonly tenant?: { readonly name: string } | undefined;
  readonly tenantQueued?: number;
  /** In a fleet: items that run count as well. */
  readonly atWorkers?: number;
  /** Set in a fleet if the queue is full by bytes. */
  readonly maxQueueBytes?: number;
  /** The time until the queue is empty; undefined until it is known. */
  readonly drainMs?: number;
  readonly expectedMs?: number;
  readonly timeoutMs?: number;
}

const guessedDrainMs = 1000;

const retryTimes = new WeakMap<Queue, WeakMap<object, RetryTimes>>();

/** Each tenant has its own, so that others' requests do not delay its retries. */
function retryTimesOf(queue: Queue, tenant: object): RetryTimes {
  const ofQueue = retryTimes.get(queue) ?? new WeakMap<object, RetryTimes>();
  retryTimes.set(queue, ofQueue);
  const known = ofQueue.get(tenant) ?? new RetryTimes();
  ofQueue.set(tenant, known);
  return known;
}

/** The problem for a tenant's failed request. For a full queue it says when to come back and names this server's settings. */
export function problemFor(error: unknown, queue: Queue, tenant: object = queue): Problem {
  if (!(error instanceof BatcherError) || error.code !== "QUEUE_FULL") return problemOf(error);
  const { name, settings } = queue;
  const { queueMaxSize, queueFullStatus: status } = settings;
  const {
    queued = queueMaxSize,
    atWorkers,
    maxQueueBytes,
    drainMs = guessedDrainMs,
    expectedMs,
    timeoutMs,
    tenant: full,
    tenantQueued = queued,
  } = error.details as Refusal;
  const held = atWorkers === undefined ? `${queued} items wait` : `${queued} items wait, ${atWorkers} are at workers`;
  const bound =
    maxQueueBytes === undefined
      ? `${held} (QUEUE_MAX_SIZE ${queueMaxSize})`
      : `its items take all of the ${maxQueueBytes} bytes that it reserves in NATS`;
  const retryMs = retryTimesOf(queue, tenant).waitMs(performance.now(), drainMs, tenantQueued);
  const room =
    full === undefined
      ? `The queue of ${name} is full: ${bound}.`
      : `The room of ${full.name} in the queue of ${name} is full: ${tenantQueued} of the ${queued} items that wait are its own.`;
  const reason =
    expectedMs === undefined
      ? room
      : `The queue of ${name} is too long for a deadline of ${timeoutMs} ms: a result is expected after ${Math.ceil(expectedMs)} ms.`;
  const message = `${reason} Retry in ${retryMs} ms.`;
  const headers = retryIn(retryMs);
  return withoutStack(() => new Problem("QUEUE_FULL", message, { status, headers, cause: error }));
}
