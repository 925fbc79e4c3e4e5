import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";
import { context, propagation, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from "@opentelemetry/sdk-trace-base";
import { floatsRequest, grpcServing } from "./grpc-serving.js";
import { doubling, fronts, serving } from "./serving.js";

// What an SDK that is preloaded does.
const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
trace.setGlobalTracerProvider(provider);
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
propagation.setGlobalPropagator(new W3CTraceContextPropagator());
beforeEach(() => exporter.reset());
after(() => provider.shutdown());

const traceId = "0af7651916cd43dd8448eb211c80319c";
const callerId = "b7ad6b7169203331";

/** The spans that joined a batch: those of requests, or behind fronts those that the hub makes below them. */
async function joined(requests: readonly ReadableSpan[]): Promise<readonly ReadableSpan[]> {
  if (fronts === 1) return requests;
  const items = await finished("double item", requests.length);
  assert.deepEqual(
    new Set(items.map(({ parentSpanContext }) => parentSpanContext?.spanId)),
    new Set(requests.map((span) => span.spanContext().spanId)),
  );
  return items;
}

/** The finished spans of a name, once there are as many. */
async function finished(name: string, count: number) {
  for (;;) {
    const spans = exporter.getFinishedSpans().filter((span) => span.name === name);
    if (spans.length >= count) return spans;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("with an SDK registered, a request's span continues its traceparent and says which batch it rode in", async (t) => {
  const server = await serving(t, [doubling()]);
  const headers = { traceparent: `00-${traceId}-${callerId}-01` };
  assert.equal((await server.post("/infer", [1, 2, 3], headers)).status, 200);
  const [request] = await finished("POST /infer", 1);
  assert.equal(request!.kind, SpanKind.SERVER);
  assert.equal(request!.spanContext().traceId, traceId);
  assert.equal(request!.parentSpanContext?.spanId, callerId);
  assert.equal(request!.attributes["http.response.status_code"], 200);
  const [item] = await joined([request!]);
  assert.equal(item!.attributes["sheaf.batch.size"], 1);
  const [batch] = await finished("double batch", 1);
  assert.deepEqual(batch!.links.map((link) => link.context.spanId), [item!.spanContext().spanId]); // prettier-ignore
});

test("requests that share a batch are linked by its span, each in a trace of its own", async (t) => {
  const server = await serving(t, [doubling()]);
  await Promise.all([1, 2, 3].map(() => server.post("/infer", { inputs: [[1, 2, 3], [4, 5, 6]] }))); // prettier-ignore
  const requests = await finished("POST /infer", 3);
  assert.equal(new Set(requests.map((span) => span.spanContext().traceId)).size, 3);
  const batches = await finished("double batch", 1);
  const linked = batches.flatMap(({ links }) => links.map((link) => link.context.spanId));
  for (const span of await joined(requests)) assert.ok(linked.includes(span.spanContext().spanId));
});

test("a request that fails for the server's part has the status error, a caller's mistake has not", async (t) => {
  const failing = { ...doubling("failing"), run: () => Promise.reject(new Error("broken")) };
  const server = await serving(t, [failing]);
  assert.equal((await server.post("/infer", [1, 2, 3])).status, 500);
  assert.equal((await server.post("/infer", [1])).status, 422);
  const [broken, wrong] = await finished("POST /infer", 2);
  assert.equal(broken!.status.code, SpanStatusCode.ERROR);
  assert.equal(wrong!.status.code, SpanStatusCode.UNSET);
});

test("a request over gRPC is a span below its traceparent, with the status of the call", async (t) => {
  const server = await grpcServing(t, [doubling()]);
  const metadata = { traceparent: `00-${traceId}-${callerId}-01` };
  const name = "inference.GRPCInferenceService/ModelInfer";
  assert.equal((await server.call("ModelInfer", floatsRequest("double", 1, 2, 3), metadata)).status, "OK");
  assert.equal((await server.call("ModelInfer", floatsRequest("none", 1, 2, 3), metadata)).status, "NOT_FOUND");
  const [good, wrong] = await finished(name, 2);
  assert.deepEqual([good!.spanContext().traceId, good!.parentSpanContext?.spanId], [traceId, callerId]);
  assert.deepEqual([good!.attributes["rpc.grpc.status_code"], good!.attributes["sheaf.batch.size"]], [0, 1]);
  assert.equal(wrong!.attributes["rpc.grpc.status_code"], 5);
});
