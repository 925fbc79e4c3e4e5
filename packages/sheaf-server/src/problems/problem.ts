import { STATUS_CODES } from "node:http";
import { BatcherError, type ErrorCode } from "sheaf";
import { httpStatusOf } from "sheaf/internal/http";
import { NatsQueueError } from "sheaf/adapters/nats";
import { describe } from "sheaf/internal";
import { typedMessage } from "../shared/typed-message.ts";

/** Status of every error that the server itself finds. */
const ownStatusOf = {
  BAD_REQUEST: 400,
  NOT_JSON: 400,
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  MODEL_NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  BODY_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  WRONG_HOST: 421,
  LOAD_FAILED: 422,
  CRASHING_INPUT: 422,
  TENANT_LIMIT: 429,
  HEADERS_TOO_LARGE: 431,
  MODEL_ERROR: 500,
  INTERNAL: 500,
  UPSTREAM_ERROR: 502,
  UPSTREAM_UNREACHABLE: 502,
  DEAD_LETTERED: 502,
  NOT_READY: 503,
  DRAINING: 503,
  STORAGE_FULL: 507,
} as const;

export type ProblemCode = ErrorCode | keyof typeof ownStatusOf;

export const statusOfCode: Readonly<Record<ProblemCode, number>> = { ...ownStatusOf, ...httpStatusOf };

/** An error with its place in the protocol. `param` is the path of the wrong value: `inputs[3]`. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly code: ProblemCode;
  readonly status: number;
  readonly param: string | null;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ProblemCode,
    message: string,
    extra: {
      readonly param?: string | undefined;
      readonly status?: number | undefined;
      readonly headers?: Readonly<Record<string, string>> | undefined;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, extra.cause === undefined ? undefined : { cause: extra.cause });
    this.code = code;
    this.status = extra.status ?? statusOfCode[code];
    this.param = extra.param ?? null;
    this.headers = extra.headers ?? {};
  }
}

/** A wrong value: its path, the expected kind, the actual value; undefined for one that is missing. Status 422. */
export function invalid(path: string, expected: string, got: unknown): Problem {
  const where = path === "" ? "The body" : path;
  const fault = got === undefined ? `is missing; it must be ${expected}` : `must be ${expected}, got ${describe(got)}`;
  return new Problem("INVALID_INPUT", `${where} ${fault}.`, { param: path || undefined });
}

/** The client has gone, and the server did not fail: only a log at debug shows it. */
export const clientClosedRequest = (): Problem => new Problem("BAD_REQUEST", "The client hung up.");

export const messageOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : describe(thrown));

/**
 * The problem document for anything thrown. An error of a model keeps its message. `deadline` is how a caller asks for more
 * time.
 */
export function problemOf(error: unknown, deadline = "X-Request-Timeout-Ms"): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof BatcherError) return problemOfCrash(error) ?? problemOfBatcher(error, deadline);
  if (error instanceof NatsQueueError) return problemOfQueue(error);
  const fastifyProblem = problemOfFastify(error);
  if (fastifyProblem !== undefined) return fastifyProblem;
  // Of a run that had items of several senders: the words may be those of another's input.
  if (error instanceof Error && "isOfStrangers" in error)
    return spared("MODEL_ERROR", "The model failed during", error);
  const message = error instanceof Error ? typedMessage(error) : describe(error);
  // Each item of a batch gets it.
  const shown = message.length > longestMessage ? `${message.slice(0, longestMessage)}…` : message;
  return new Problem("MODEL_ERROR", `The model failed: ${shown}`, { cause: error });
}

/** More than a worker's error brings along. */
const longestMessage = 10_000;

function problemOfBatcher(error: BatcherError, deadline: string): Problem {
  // In bytes it is NATS' limit of a message, not the model's of an item.
  const code = error.code === "ITEM_TOO_LARGE" && "bytes" in error.details ? "BODY_TOO_LARGE" : error.code;
  return new Problem(code, messageOfBatcher(error, deadline), { cause: error });
}

/** Nothing gets better by itself. */
const hungRetryMs = 30_000;

/** An input that is not run because it crashed a worker, or a model whose workers pause after many crashes. */
function problemOfCrash(error: BatcherError): Problem | undefined {
  const { refusedForMs, restartInMs, hungRuns, items } = error.details as Partial<Record<string, number>>;
  if (error.code !== "WORKER_CRASHED") return undefined;
  if (refusedForMs !== undefined) return new Problem("CRASHING_INPUT", error.message, { cause: error });
  if (restartInMs !== undefined || hungRuns !== undefined)
    return new Problem("NOT_READY", error.message, { headers: retryAfter(restartInMs ?? hungRetryMs), cause: error });
  return items === 1 ? undefined : spared(error.code, "A worker ended during", error);
}

/** Only the log has the words. */
const spared = (code: ProblemCode, what: string, error: Error): Problem =>
  new Problem(code, `${what} a run of this input and others. Retry; the server's log has more under this request id.`, {
    cause: error,
  });

/** The header that says when to come back, in whole seconds. */
export const retryAfter = (ms: number): Record<string, string> => ({
  "retry-after": String(Math.max(1, Math.ceil(ms / 1000))),
});

/** `retryAfter`, and the exact time in milliseconds. */
export const retryIn = (ms: number): Record<string, string> => ({
  ...retryAfter(ms),
  "retry-after-ms": String(Math.ceil(ms)),
});

/**
 * The library's messages name its own options, which neither a client nor the operator of a server has: these say what
 * they can do.
 */
function messageOfBatcher({ code, message, details }: BatcherError, deadline: string): string {
  const { timeoutMs, waiting, likelyMs, runTimeoutMs, size, weight, maxItemWeight } = details;
  switch (code) {
    case "TIMEOUT": {
      if (timeoutMs === undefined) return message;
      const reason =
        likelyMs !== undefined
          ? `its batch takes about ${Math.ceil(likelyMs as number)} ms and would end too late`
          : waiting === true
            ? "it was still waiting and will not run"
            : "its batch was running and its result is dropped";
      return `No result within ${timeoutMs as number} ms: ${reason}. ${afterTimeout(deadline)}`;
    }
    case "RUN_TIMEOUT":
      if (runTimeoutMs === undefined || size === undefined) return message;
      return (
        `A batch of ${size as number} items ran longer than ${runTimeoutMs as number} ms (RUN_TIMEOUT_MS) and was abandoned. ` +
        "Retry; if it happens again, the server needs a longer RUN_TIMEOUT_MS or a smaller MAX_BATCH_SIZE."
      );
    case "QUEUE_FULL":
      return "The queue is full. Retry later.";
    case "ITEM_TOO_LARGE":
      if (maxItemWeight === undefined) return message;
      return `The input weighs ${weight as number}; the maximum of one input is ${maxItemWeight as number}. Split it.`;
    default:
      return message;
  }
}

const afterTimeout = (deadline: string): string =>
  `Retry later, or allow more time: ${deadline}, at most the server's REQUEST_TIMEOUT_MS. ` +
  "If it happens often, the server needs more capacity.";

/** The queue of a fleet: the problems differ in whether a request can be sent again at once. */
function problemOfQueue(error: NatsQueueError): Problem {
  if (error.code === "DEAD_LETTERED") return new Problem("DEAD_LETTERED", error.message, { cause: error });
  return new Problem("NOT_READY", error.message, { headers: { "retry-after": "1" }, cause: error });
}

function problemOfFastify(error: unknown): Problem | undefined {
  const { code, statusCode } = error as { code?: unknown; statusCode?: unknown };
  if (typeof code !== "string" || !code.startsWith("FST_ERR_")) return undefined;
  const { message } = error as Error;
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") return new Problem("BODY_TOO_LARGE", message, { cause: error });
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE" || code === "FST_ERR_CTP_INVALID_CONTENT_TYPE")
    return new Problem(
      "UNSUPPORTED_MEDIA_TYPE",
      "Send the body as JSON, with the header content-type: application/json.",
    );
  const isRequest = typeof statusCode === "number" && statusCode >= 400 && statusCode < 500;
  return new Problem(isRequest ? "BAD_REQUEST" : "INTERNAL", message, { cause: error });
}

/** The kind of error in the words of OpenAI's API. */
export function typeOf({ status }: Problem): string {
  if (status === 401) return "authentication_error";
  if (status === 403) return "permission_error";
  if (status === 404) return "not_found_error";
  if (status === 429) return "rate_limit_error";
  if (status === 504 || status === 408) return "timeout_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

/** The body of an error: a problem document (RFC 9457) and OpenAI's `error` in one. */
export function problemBody(problem: Problem, requestId: string): Record<string, unknown> {
  const { code, status, message, param } = problem;
  return {
    type: `urn:sheaf:error:${code}`,
    title: STATUS_CODES[status] ?? "Error",
    status,
    detail: message,
    request_id: requestId,
    error: { message, type: typeOf(problem), param, code },
  };
}
