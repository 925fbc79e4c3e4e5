import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { after, beforeEach, test } from "node:test";
import { context, SpanStatusCode, trace, type Span } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from "@opentelemetry/sdk-trace-base";
import { BatcherError, createBatcher } from "../../dist/index.js";
import { openTelemetry } from "../../dist/metrics/index.js";

const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
trace.setGlobalTracerProvider(provider);
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const tracer = trace.getTracer("test");
beforeEach(() => exporter.reset());
after(() => provider.shutdown());

const finished = (name: string): ReadableSpan[] => exporter.getFinishedSpans().filter((span) => span.name === name);
const idOf = (span: { spanContext(): { spanId: string } }): string => span.spanContext().spanId;

/** Runs `body` in a span of its own, as a caller with tracing would. */
const inSpan = <T>(name: string, body: (span: Span) => Promise<T>): Promise<T> =>
  tracer.startActiveSpan(name, async (span) => {
    try {
      return await body(span);
    } finally {
      span.end();
    }
  });

test("a batch's span links the span of every caller, and each caller's span says which batch, how large and how long it waited", async () => {
  const double = openTelemetry(
    createBatcher(async (numbers: number[]) => (await sleep(5), numbers.map((number) => 2 * number)), {
      name: "double",
    }),
    { trace },
  );
  const results = await Promise.all([1, 2, 3].map((number) => inSpan("caller", () => double(number))));
  assert.deepEqual(results, [2, 4, 6]);
  const [batch, ...others] = finished("double batch");
  assert.equal(others.length, 0);
  const callers = finished("caller");
  assert.deepEqual(batch!.links.map((link) => link.context.spanId).sort(), callers.map(idOf).sort());
  assert.equal(batch!.attributes["sheaf.batch.size"], 3);
  assert.equal(batch!.parentSpanContext, undefined, "it belongs to no caller more than to another");
  assert.ok(batch!.duration[0] + batch!.duration[1] / 1e9 >= 0.004, "it lasts as long as the run");
  for (const caller of callers) {
    assert.equal(caller.attributes["sheaf.batch.id"], batch!.attributes["sheaf.batch.id"]);
    assert.equal(caller.attributes["sheaf.batch.size"], 3);
    assert.ok((caller.attributes["sheaf.queue_wait_ms"] as number) >= 0);
    assert.ok(
      (caller.attributes["sheaf.queue_wait_ms"] as number) < caller.duration[0] * 1000 + caller.duration[1] / 1e6,
    );
  }
});

test("callers of different batches are linked to their own batch only, however they call", async () => {
  const double = openTelemetry(
    createBatcher((numbers: number[]) => numbers.map((number) => 2 * number), { name: "double", maxBatchSize: 2 }),
    { trace },
  );
  const spans = new Map<string, string>();
  const caller = (name: string, call: () => Promise<unknown>): Promise<void> =>
    inSpan(name, async (span) => {
      spans.set(idOf(span), name);
      await call();
    });
  await Promise.all([
    caller("single", () => double(1)),
    caller("list", () => double.many([2, 3])),
    caller("settled", () => double.settle([4])),
    caller("map", async () => {
      for await (const result of double.map([5, 6])) assert.ok(result > 0);
    }),
  ]);
  const linked = finished("double batch").map(({ links, attributes }) => [
    attributes["sheaf.batch.size"],
    ...links.map((link) => spans.get(link.context.spanId)),
  ]);
  assert.deepEqual(linked.slice(0, 2), [[2, "single", "list"], [2, "list", "settled"]]); // prettier-ignore
  assert.deepEqual([...new Set(linked.slice(2).flat())].filter((name) => typeof name === "string"), ["map"]); // prettier-ignore
});

test("no caller's context reaches the batch function or another caller", async () => {
  const store = new AsyncLocalStorage<string>();
  const seenInRun: unknown[] = [];
  const echo = openTelemetry(
    createBatcher(async (names: string[]) => {
      seenInRun.push(trace.getActiveSpan(), store.getStore());
      await sleep(1);
      seenInRun.push(trace.getActiveSpan(), store.getStore());
      return names;
    }),
    { trace },
  );
  await Promise.all(
    ["a", "b", "c"].map((name) =>
      store.run(name, () =>
        inSpan(name, async (span) => {
          assert.equal(await echo(name), name);
          assert.equal(store.getStore(), name);
          assert.equal(trace.getActiveSpan(), span);
        }),
      ),
    ),
  );
  assert.deepEqual(seenInRun, [undefined, undefined, undefined, undefined]);
  assert.equal(finished("batcher batch")[0]!.links.length, 3);
});

test("the span of a failed batch has the status error; what a caller makes of it is the caller's", async () => {
  const failing = openTelemetry(
    createBatcher(
      (codes: string[]): string[] => {
        if (codes.includes("short")) return [];
        throw new Error("the model is broken");
      },
      { name: "failing" },
    ),
    { trace },
  );
  await inSpan("caller", () => assert.rejects(failing("throws"), /the model is broken/));
  await inSpan("caller", () => assert.rejects(failing("short"), (error) => error instanceof BatcherError));
  const [thrown, short] = finished("failing batch");
  assert.equal(thrown!.status.code, SpanStatusCode.ERROR);
  assert.equal(short!.status.code, SpanStatusCode.ERROR);
  assert.equal(short!.attributes["error.type"], "RESULT_COUNT");
  for (const caller of finished("caller")) {
    assert.equal(caller.status.code, SpanStatusCode.UNSET);
    assert.ok((caller.attributes["sheaf.batch.id"] as number) > 0);
  }
});

test("the span of a batch whose bad items were found says how many, and lasts until the last result", async () => {
  const runs: number[] = [];
  const parse = openTelemetry(
    createBatcher(
      async (texts: string[]) => {
        runs.push(texts.length);
        await sleep(5);
        return texts.map((text) => JSON.parse(text) as unknown);
      },
      { name: "parse", onBatchError: "bisect" },
    ),
    { trace },
  );
  await Promise.allSettled(["1", "{", "3", "4"].map((text) => inSpan("caller", () => parse(text))));
  assert.deepEqual(runs, [4, 2, 1, 1, 2]);
  // The callers have their results before the search ends.
  while (finished("parse batch").length === 0) await sleep(1);
  const [batch, ...others] = finished("parse batch");
  assert.deepEqual([others.length, batch!.attributes["sheaf.batch.failed_items"], batch!.links.length], [0, 1, 4]);
  assert.deepEqual(batch!.status, { code: SpanStatusCode.ERROR, message: "1 of 4 items failed" });
  assert.ok(batch!.duration[0] + batch!.duration[1] / 1e9 >= 0.02, "five runs of 5 ms");
});

test("a call without a span runs as before, and its batch has a span without a link", async () => {
  const double = openTelemetry(
    createBatcher((numbers: number[]) => numbers, { name: "double" }),
    { trace },
  );
  assert.deepEqual(await Promise.all([1, 2].map(double)), [1, 2]);
  assert.deepEqual(await double.many([1, 2], { priority: "bulk" }), [1, 2]);
  for (const batch of finished("double batch")) assert.deepEqual(batch.links, []);
  await assert.rejects(double(1, { signal: AbortSignal.abort(new Error("gone")) }), /gone/);
  assert.equal(double.stats().items.ok, 4);
  assert.equal(double.name, "double");
  await double.close();
  await assert.rejects(double(1), { code: "CLOSED" });
});

test("a batch links 128 callers at most, and a span that has ended is left alone", async () => {
  const echo = openTelemetry(
    createBatcher((ids: number[]) => ids, { name: "echo", maxBatchSize: 200 }),
    { trace },
  );
  const calls: Promise<unknown>[] = [];
  for (let id = 0; id < 200; id++)
    tracer.startActiveSpan("caller", (span) => {
      calls.push(echo(id));
      span.end();
    });
  await Promise.all(calls);
  assert.equal(finished("echo batch")[0]!.links.length, 128);
  assert.equal(finished("caller")[0]!.attributes["sheaf.batch.id"], undefined);
});
