import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { FastifyRequest } from "fastify";
import type { CallOptions, Priority } from "sheaf";
import { priorities } from "sheaf/internal/http";
import { cacheUseOf, type CacheUse } from "../cache/cache-use.ts";
import { traceparentOf } from "../observe/traceparent.ts";
import { clientClosedRequest, invalid } from "../problems/problem.ts";
import type { Settings } from "../settings/settings.ts";
import { Type, type Schema } from "./schema/json-schema.ts";
import { text } from "./schema/route-schema.ts";
import type { Caller } from "../tenants/caller.ts";
import { callerOf } from "./check-callers.ts";

/** The options of a request for its items: priority, deadline, signal, and its W3C trace context as the tag. */
export interface InferOptions extends CallOptions {
  /**
   * Counts the items looked up and found in the cache.
   * @default none
   */
  readonly cacheUse?: CacheUse | undefined;
  /**
   * How to treat texts that are too long: false and "NONE" refuse them.
   * @default the setting AUTO_TRUNCATE
   */
  readonly truncate?: Truncate | undefined;
  /**
   * Who asks.
   * @default none: callers are not told apart
   */
  readonly caller?: Caller | undefined;
  /**
   * Who is charged for its items if there is no tenant.
   * @default its connection, which its signal stands for
   */
  readonly sender?: object | string | undefined;
}

/** In the notations of the imitated services. */
export type Truncate = boolean | "END" | "START" | "NONE";

/** The options that a batcher takes. */
export const forBatcher = ({ priority, timeoutMs, signal, tag, alone }: InferOptions): CallOptions =>
  // One by one, because a rest pattern costs a microsecond per request.
  ({ priority, timeoutMs, signal, tag, alone }) satisfies Required<CallOptions>;

/**
 * The call options in a request's headers: `X-Sheaf-Priority`, which wins over the body's, and `X-Request-Timeout-Ms` up to
 * REQUEST_TIMEOUT_MS. The signal aborts when the client hangs up.
 */
export function callOptionsOf(request: FastifyRequest, settings: Settings, named?: Priority): InferOptions {
  const ofHeaders = optionsOf(request.headers, hangUpSignal(request.raw), settings);
  const options = named === undefined ? ofHeaders : { ...ofHeaders, priority: ofHeaders.priority ?? named };
  const caller = callerOf(request);
  if (caller === undefined && settings.cacheMaxBytes === 0) return options;
  return { ...options, caller, cacheUse: settings.cacheMaxBytes > 0 ? cacheUseOf(request) : undefined };
}

/** The same for headers or gRPC metadata; `named` is how errors name a header. */
export function optionsOf(
  headers: FastifyRequest["headers"],
  signal: AbortSignal,
  settings: Settings,
  named?: (header: string) => string,
): InferOptions & { readonly timeoutMs: number } {
  const { priority, timeoutMs } = waitOf(headers, settings, named);
  return { priority, timeoutMs, signal, tag: traceparentOf({ headers }) };
}

/** The options among them that decide how long the request may wait. */
export const waitOf = (
  headers: FastifyRequest["headers"],
  { requestTimeoutMs }: Settings,
  named: (header: string) => string = (header) => header,
): Pick<InferOptions, "priority"> & { readonly timeoutMs: number } => ({
  priority: priorityOf(headers["x-sheaf-priority"], named("X-Sheaf-Priority")),
  timeoutMs: timeoutOf(headers["x-request-timeout-ms"], requestTimeoutMs, named("X-Request-Timeout-Ms")),
});

/** The headers that these options are read from, and those of the request's names. */
export const inferenceHeaders = ({ requestTimeoutMs }: Settings): Schema =>
  Type.Object({
    "x-sheaf-priority": Type.Optional(Type.Union(priorities.map((priority) => Type.Literal(priority)))),
    "x-request-timeout-ms": Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: requestTimeoutMs,
        description: "Deadline of the request in milliseconds; at most REQUEST_TIMEOUT_MS, which is the default.",
      }),
    ),
    "x-request-id": Type.Optional(text("1 to 128 visible ASCII characters; generated if absent.")),
    traceparent: Type.Optional(text("W3C trace context; the log has its trace id.")),
  });

function priorityOf(header: string | string[] | undefined, name: string): Priority | undefined {
  if (header === undefined) return undefined;
  if (!priorities.includes(header as Priority)) throw invalid(name, `one of ${priorities.join(", ")}`, header);
  return header as Priority;
}

function timeoutOf(header: string | string[] | undefined, longestMs: number, name: string): number {
  if (header === undefined) return longestMs;
  const timeoutMs = /^\d+(\.\d+)?(e[+-]?\d+)?$/i.test(String(header)) ? Number(header) : 0;
  // Refused rather than cut: the caller would wait for an answer that cannot come.
  if (!(timeoutMs > 0 && timeoutMs <= longestMs)) {
    const expected = `a number of milliseconds above 0 and at most ${longestMs} (REQUEST_TIMEOUT_MS)`;
    throw invalid(name, expected, header);
  }
  return timeoutMs;
}

// One signal per connection, not per request: creating one costs as much as parsing a small body, and an HTTP/1.1 client hangs up by
// closing the connection.
const hangUps = new WeakMap<Socket, AbortSignal>();

function hangUpSignal(request: IncomingMessage): AbortSignal {
  const { socket } = request;
  // A user's app may speak HTTP/2, where a request can be cancelled while its connection stays.
  if (request.httpVersionMajor > 1) return abortedOnce(request, "aborted");
  const known = hangUps.get(socket);
  if (known !== undefined) return known;
  const signal = abortedOnce(socket, "close");
  hangUps.set(socket, signal);
  return signal;
}

function abortedOnce(emitter: NodeJS.EventEmitter, event: "aborted" | "close"): AbortSignal {
  const controller = new AbortController();
  emitter.once(event, () => controller.abort(clientClosedRequest()));
  return controller.signal;
}
