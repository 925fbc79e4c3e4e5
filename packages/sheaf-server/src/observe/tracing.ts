import { createRequire } from "node:module";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import type { Batcher } from "sheaf";
import { openTelemetry } from "sheaf/metrics";
import type { SpanLike, TraceLike } from "sheaf/internal/metrics";

/** The part of @opentelemetry/api that is used. */
interface Api {
  readonly trace: TraceLike & {
    setSpan(context: unknown, span: SpanLike): unknown;
  };
  readonly context: { active(): unknown; with<T>(context: unknown, run: () => T): T };
  readonly propagation: {
    extract(context: unknown, carrier: object): unknown;
    inject(context: unknown, carrier: { traceparent?: string }): void;
  };
}

/** A tracer with the parameter that names a span's parent. */
interface ParentTracer {
  startSpan(name: string, options: object, parent: unknown): SpanLike;
}

const serverKind = 1;
const consumerKind = 4;
const errorStatus = 2;

/**
 * The OpenTelemetry API, if an SDK was registered before the server was made (`node --import ./tracing.js …`). The
 * server depends on neither: it takes the API that the SDK came with.
 */
function registeredApi(): Api | undefined {
  const registered = (globalThis as Record<symbol, { trace?: unknown } | undefined>)[
    Symbol.for("opentelemetry.js.api.1")
  ];
  if (registered?.trace === undefined) return undefined;
  for (const from of [import.meta.url, join(process.cwd(), "package.json")]) {
    try {
      return createRequire(from)("@opentelemetry/api") as Api;
    } catch {
      // Not installed beside this package, or not in the working directory.
    }
  }
  return undefined;
}

/** Whether requests and batches of this process become spans. */
export const isTraced = (): boolean => registeredApi() !== undefined;

/** With spans of batches and links to their requests, where tracing is on; else the batcher itself. */
export function tracedBatcher<In, Out>(batcher: Batcher<In, Out>): Batcher<In, Out> {
  const api = registeredApi();
  return api === undefined ? batcher : openTelemetry(batcher, { trace: api.trace });
}

export interface RequestSpan {
  /** Runs it, and the functions it calls, below the span. */
  run<T>(request: () => T): T;
  end(attributes: Readonly<Record<string, string | number>>, hasFailed: boolean): void;
}

/** Where tracing is on, makes a span below a request's `traceparent`, unless an instrumentation has made one already. */
export type SpanOfRequest = (
  name: string,
  headers: object,
  attributes: Readonly<Record<string, string>>,
  elapsedMs: number,
) => RequestSpan | undefined;

export function requestSpans(): SpanOfRequest | undefined {
  const api = registeredApi();
  if (api === undefined) return undefined;
  const { trace, context, propagation } = api;
  const tracer = trace.getTracer("sheaf-server") as unknown as ParentTracer;
  return (name, headers, attributes, elapsedMs) => {
    if (trace.getActiveSpan?.() !== undefined) return undefined;
    const parent = propagation.extract(context.active(), headers);
    const startTime = performance.timeOrigin + performance.now() - elapsedMs;
    const span = tracer.startSpan(name, { kind: serverKind, startTime, attributes }, parent);
    return {
      run: (request) => context.with(trace.setSpan(parent, span), request),
      end(more, hasFailed) {
        span.setAttributes(more);
        if (hasFailed) span.setStatus({ code: errorStatus });
        span.end();
      },
    };
  };
}

/** Where tracing is on, gives every POST a span. */
export function traceRequests(app: FastifyInstance): void {
  const spanOf = requestSpans();
  if (spanOf === undefined) return;
  // After the body was read, which happens in another async context.
  app.addHook("preHandler", (request, reply, done) => {
    if (request.method !== "POST") return done();
    const { url = "" } = request.routeOptions;
    const attributes = { "http.request.method": request.method, "http.route": url, "url.path": request.url };
    const span = spanOf(`${request.method} ${url}`, request.headers, attributes, reply.elapsedTime);
    if (span === undefined) return done();
    reply.raw.once("close", () => {
      span.end({ "http.response.status_code": reply.statusCode }, reply.statusCode >= 500);
    });
    span.run(done);
  });
}

/** The trace context of an item that goes through the queue of a fleet: the active span where tracing is on, else its client's own. */
export function queueTraces(): (own: unknown) => string | undefined {
  const api = registeredApi();
  if (api === undefined) return textOf;
  const { context, propagation } = api;
  return (own) => {
    const carrier: { traceparent?: string } = {};
    propagation.inject(context.active(), carrier);
    return carrier.traceparent ?? textOf(own);
  };
}

const textOf = (tag: unknown): string | undefined => (typeof tag === "string" ? tag : undefined);

/** Runs an item of a queue; where tracing is on and it came with a trace context, under a span `NAME item` below that. */
export type ContinueTrace = <T>(traceparent: unknown, run: () => Promise<T>) => Promise<T>;

/** For items of the model `name` that come from other processes, over this messaging system. */
export function continuedTraces(name: string, system: string): ContinueTrace {
  const api = registeredApi();
  if (api === undefined) return (_traceparent, run) => run();
  const { trace, context, propagation } = api;
  const tracer = trace.getTracer("sheaf-server") as unknown as ParentTracer;
  return async (traceparent, run) => {
    if (traceparent === undefined) return run();
    const parent = propagation.extract(context.active(), { traceparent });
    const attributes = { "messaging.system": system, "sheaf.batcher": name };
    const span = tracer.startSpan(`${name} item`, { kind: consumerKind, attributes }, parent);
    try {
      return await context.with(trace.setSpan(parent, span), run);
    } catch (error) {
      span.setStatus({ code: errorStatus });
      throw error;
    } finally {
      span.end();
    }
  };
}
