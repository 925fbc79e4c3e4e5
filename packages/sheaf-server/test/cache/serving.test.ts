import assert from "node:assert/strict";
import { test } from "node:test";
import type { ModelDefinition } from "../../dist/index.js";
import { limitsOf } from "../../dist/server/observe/limits.js";
import { bearer, entry, keysFile } from "../tenants/keys.js";
import { doubling, gated, measuringTexts, serving, type Serving } from "../server/serving.js";

const cached = { cacheMaxBytes: 1_000_000 };
const cacheOf = ({ headers }: { headers: Headers }): string | null => headers.get("x-sheaf-cache");
/** A reply without what differs between two runs as well. */
const steady = ({ json }: { json: any }): unknown => {
  const own = { latency_ms: 0, queue_ms: 0, run_ms: 0, batch_size: 0, request_id: "", id: "" };
  return Array.isArray(json) ? json : { ...json, ...own };
};

const mixed: ModelDefinition[] = [
  doubling(),
  measuringTexts(),
  {
    name: "labels",
    input: { kind: "json" },
    output: { kind: "labels", labels: ["good", "bad"] },
    run: (items: unknown[]) => items.map(() => ({ scores: Float32Array.of(0.75, 0.25), tokens: 3, truncated: true })),
  },
  {
    name: "tensors",
    input: { kind: "tensors", tensors: [{ name: "x", datatype: "INT64", shape: [2] }, { name: "y", datatype: "FP32", shape: [null] }] },
    output: { kind: "tensors", tensors: [{ name: "z", datatype: "INT64", shape: [2] }, { name: "t", datatype: "BYTES", shape: [1] }] },
    run: (items: { x: BigInt64Array; y: Float32Array }[]) => items.map(({ x, y }) => ({ z: x, t: [`${y.length}`] })),
  },
  {
    name: "values",
    input: { kind: "json" },
    output: { kind: "json" },
    run: (items: unknown[]) => items.map((item) => ({ got: item, list: [1, null, Float32Array.of(0.5)] })),
  },
]; // prettier-ignore

const requests: readonly (readonly [string, object])[] = [
  ["/infer", { input: [1, 2, 3] }],
  ["/infer", { inputs: [[1, 2, 4], [1, 2, 5]] }],
  ["/infer/measure", { input: "some words" }],
  ["/infer/labels", { input: 7 }],
  ["/infer/tensors", { input: { x: [1, -2], y: [0.5, 1, 2] } }],
  ["/infer/values", { input: { deep: [{ a: "é" }] } }],
  ["/v1/embeddings", { model: "measure", input: ["more words", "and more"] }],
  ["/v1/embeddings", { model: "measure", input: "base", encoding_format: "base64" }],
  ["/rerank", { query: "what is it", texts: ["this", "that thing"], model: "measure", return_text: true }],
  ["/embed", { inputs: ["tei's words", "and others"], normalize: false }],
  ["/api/embeddings", { model: "measure", prompt: "ollama's words" }],
  ["/vectors", { texts: ["weaviate's words", "and more of them"] }],
  ["/v2/models/double/infer", { inputs: [{ name: "input", datatype: "FP32", shape: [2, 3], data: [7, 8, 9, 10, 11, 12] }] }],
  ["/v2/models/tensors/infer", { inputs: [{ name: "x", datatype: "INT64", shape: [1, 2], data: [5, 6] }, { name: "y", datatype: "FP32", shape: [1, 1], data: [9] }] }],
  ["/v2/models/values/infer", { inputs: [{ name: "input", datatype: "BYTES", shape: [1], data: ['{"a":-0}'] }] }],
]; // prettier-ignore

test("on every protocol a reply from the cache is the reply of the run", async (t) => {
  const server = await serving(t, mixed, cached);
  const without = await serving(t, mixed);
  for (const [path, body] of requests) {
    const [ran, kept, plain] = [await server.post(path, body), await server.post(path, body), await without.post(path, body)]; // prettier-ignore
    assert.equal(ran.status, 200, ran.text);
    assert.deepEqual([cacheOf(ran), cacheOf(kept), cacheOf(plain)], ["miss", "hit", null], path);
    assert.deepEqual(steady(kept), steady(ran));
    assert.deepEqual(steady(kept), steady(plain));
    assert.equal(kept.headers.get("content-type"), ran.headers.get("content-type"));
  }
});

test("the binary tensor extension finds what JSON has kept, and the bytes are the same", async (t) => {
  const model = doubling();
  const server = await serving(t, [model], cached);
  const asBytes = async (): Promise<[string | null, Float32Array]> => {
    const header = Buffer.from(
      JSON.stringify({
        inputs: [{ name: "input", datatype: "FP32", shape: [1, 3], parameters: { binary_data_size: 12 } }],
        outputs: [{ name: "output", parameters: { binary_data: true } }],
      }),
    );
    const response = await fetch(`${server.url}/v2/models/double/infer`, {
      method: "POST",
      headers: { "inference-header-content-length": String(header.length) },
      body: Buffer.concat([header, Buffer.from(Float32Array.of(1.5, 2, 3).buffer)]),
    });
    const bytes = await response.arrayBuffer();
    const from = Number(response.headers.get("inference-header-content-length"));
    return [response.headers.get("x-sheaf-cache"), new Float32Array(bytes.slice(from))];
  };
  await server.post("/infer", [1.5, 2, 3]);
  assert.deepEqual(await asBytes(), ["hit", Float32Array.of(3, 4, 6)]);
  assert.equal(model.items, 1);
});

test("what only shapes the reply does not separate: encoding and route", async (t) => {
  const server = await serving(t, [measuringTexts()], cached);
  const body = { model: "measure", input: "same" };
  assert.equal(cacheOf(await server.post("/v1/embeddings", body)), "miss");
  assert.equal(cacheOf(await server.post("/v1/embeddings", { ...body, encoding_format: "base64" })), "hit");
  assert.equal(cacheOf(await server.post("/infer", { input: "same" }, { "x-sheaf-priority": "bulk" })), "hit");
});

test("each item of a list is looked for by itself, and a wrong one is none", async (t) => {
  const model = doubling();
  const server = await serving(t, [model], cached);
  await server.post("/infer", [1, 1, 1]);
  const { json, headers } = await server.post("/infer", { inputs: [[1, 1, 1], [2, 2, 2], ["x"], [2, 2, 2]] });
  assert.equal(headers.get("x-sheaf-cache"), "partial");
  assert.deepEqual(json.outputs.map((one: any) => one.error?.code ?? one[0]), [2, 4, "INVALID_INPUT", 4]); // prettier-ignore
  assert.equal(json.batch_size, 1);
  assert.equal(model.items, 2, "two equal items of a list share their run");
});

test("hits are answered while the queue is full, and misses get 429", async (t) => {
  const slow = gated();
  const gate = slow.run as (batch: Float32Array[]) => Promise<Float32Array[]>;
  const model = { ...slow, run: (batch: Float32Array[]) => (batch[0]![0] === 1 ? batch : gate(batch)) };
  const server = await serving(t, [model], { ...cached, maxBatchSize: 1, queueMaxSize: 1 });
  await server.post("/infer", [1, 2, 3]);
  const running = server.post("/infer", [0, 0, 1]);
  await slow.started;
  const waiting = server.post("/infer", [0, 0, 2]);
  while (server.models.all[0]!.stats().queued === 0) await new Promise((resolve) => setImmediate(resolve));
  const [hit, miss] = [await server.post("/infer", [1, 2, 3]), await server.post("/infer", [3, 2, 1])];
  assert.deepEqual([hit.status, hit.json.output, miss.status], [200, [1, 2, 3], 429]);
  slow.release();
  assert.deepEqual([(await running).status, (await waiting).status], [200, 200]);
});

test("equal requests in flight share one run, also where the first client hangs up", async (t) => {
  const model = gated();
  let items = 0;
  const run = model.run as (batch: Float32Array[]) => Promise<Float32Array[]>;
  const counted = { ...model, run: (batch: Float32Array[]) => ((items += batch.length), run(batch)) };
  const server = await serving(t, [counted], cached);
  const served = server.models.all[0]!;
  const controller = new AbortController();
  const first = server.post("/infer", [1, 2, 3], {}, controller.signal);
  await model.started;
  const others = [server.post("/infer", [1, 2, 3]), server.post("/infer", { inputs: [[1, 2, 3]] })];
  while (served.cache!.counts.misses < 3) await new Promise((resolve) => setImmediate(resolve));
  controller.abort();
  await assert.rejects(first);
  while (served.stats().items.aborted === 0) await new Promise((resolve) => setImmediate(resolve));
  model.release();
  const replies = await Promise.all(others);
  assert.deepEqual([replies[0]!.json.output, replies[1]!.json.outputs[0]], [[1, 2, 3], [1, 2, 3]]); // prettier-ignore
  assert.equal(items, 1);
  assert.equal(cacheOf(await server.post("/infer", [1, 2, 3])), "hit");
});

test("models that may not be cached are not, and the page's limits say why", async (t) => {
  const models = [
    { ...doubling("by-itself"), isCacheable: false },
    { ...doubling("random"), selfTest: "not-deterministic" as const },
    { ...doubling("batched"), selfTest: "dependent" as const },
    { ...doubling("own-setting"), settings: { cacheMaxBytes: 0 } },
    { ...doubling("alone"), selfTest: "dependent" as const, maxBatchSize: 1 },
    { ...doubling("slightly"), selfTest: "slightly-dependent" as const },
    { ...doubling("said-so"), selfTest: "not-deterministic" as const, isCacheable: true },
  ];
  const server = await serving(t, models, { ...cached, cacheTtlMs: 60_000 });
  const seen: Record<string, string | null> = {};
  for (const { name } of models) {
    await server.post(`/infer/${name}`, [1, 2, 3]);
    seen[name] = cacheOf(await server.post(`/infer/${name}`, [1, 2, 3]));
  }
  assert.deepEqual(seen, {
    "by-itself": null,
    random: null,
    batched: null,
    "own-setting": null,
    alone: "hit",
    slightly: "hit",
    "said-so": "hit",
  });
  const said = server.models.all.map((model) => limitsOf(model).find(({ label }) => label === "Equal inputs")?.value);
  assert.deepEqual(said, [
    "run again: it says that its results are not to be kept",
    "run again: its self-test found that it is not deterministic",
    "run again: its results depend on their batch-mates",
    undefined,
    ...new Array<string>(3).fill("answered from the cache, for 60 s"),
  ]);
});

test("equal items of two models are two items", async (t) => {
  const tripling: ModelDefinition = { ...doubling("triple"), run: (items: Float32Array[]) => items.map((item) => item.map((x) => 3 * x)) }; // prettier-ignore
  const server = await serving(t, [doubling(), tripling], cached);
  for (let round = 0; round < 2; round++) {
    assert.deepEqual((await server.post("/infer/double", [1, 2, 3])).json.output, [2, 4, 6]);
    assert.deepEqual((await server.post("/infer/triple", [1, 2, 3])).json.output, [3, 6, 9]);
  }
});

test("a list from the cache that is longer than the queue is answered", async (t) => {
  const server = await serving(t, [measuringTexts()], { ...cached, queueMaxSize: 4 });
  const body = { model: "measure", input: Array.from({ length: 20 }, (_, i) => "x".repeat(i + 1)) };
  const [ran, kept] = [await server.post("/v1/embeddings", body), await server.post("/v1/embeddings", body)];
  assert.deepEqual([cacheOf(ran), cacheOf(kept)], ["miss", "hit"]);
  assert.deepEqual(steady(kept), steady(ran));
});

test("hits are counted in /metrics and in Triton's statistics, and are not items of the batcher", async (t) => {
  const server: Serving = await serving(t, [doubling()], cached);
  await server.post("/infer", { inputs: [[1, 1, 1], [2, 2, 2]] }); // prettier-ignore
  for (let i = 0; i < 3; i++) await server.post("/infer", [1, 1, 1]);
  const { text } = await server.get("/metrics");
  for (const line of [
    'sheaf_cache_hits_total{batcher="double"} 3',
    'sheaf_cache_misses_total{batcher="double"} 2',
    'sheaf_cache_saved_runs_total{batcher="double"} 1.5',
    'sheaf_cache_evictions_total{batcher="double"} 0',
    'sheaf_cache_items{batcher="double"} 2',
    'sheaf_items_total{batcher="double",outcome="ok"} 2',
  ])
    assert.ok(text.split("\n").includes(line), `${line}\n${text}`);
  const { json } = await server.get("/v2/models/double/stats");
  const { inference_count, execution_count, inference_stats } = json.model_stats[0];
  assert.deepEqual([inference_count, execution_count], [2, 1]);
  assert.deepEqual([inference_stats.success.count, inference_stats.compute_infer.count], [4, 1]);
  assert.deepEqual([inference_stats.cache_hit.count, inference_stats.cache_miss.count], [3, 2]);
  assert.ok(inference_stats.cache_hit.ns > 0);
});

test("no hit and no shared run tells one API key what another has sent, whatever tenants they name", async (t) => {
  const gate = gated();
  const model: ModelDefinition = { ...gate, settings: { maxBatchSize: 8 } };
  const asked: number[] = [];
  const run = model.run as (items: Float32Array[]) => Promise<Float32Array[]>;
  const counting = {
    ...model,
    run: (items: Float32Array[]) => (asked.push(...items.map(([first]) => first!)), run(items)),
  };
  const { path } = keysFile(t, [entry("a"), entry("b")]);
  const server = await serving(t, [counting, measuringTexts()], { ...cached, apiKeysFile: path, tenantBy: "header" });
  const ask = (key: string, body: object, tenant = "one") =>
    server.post("/infer", body, { ...bearer(key), "x-tenant": tenant });
  const busy = ask("sk-a", { input: [0, 0, 0] });
  await gate.started;
  const asking = [ask("sk-a", { input: [1, 2, 3] }), ask("sk-b", { input: [1, 2, 3] }), ask("sk-a", { input: [1, 2, 3] }, "two")]; // prettier-ignore
  while (server.models.all[0]!.stats().queued < 2) await new Promise((resolve) => setImmediate(resolve));
  gate.release();
  for (const reply of await Promise.all([busy, ...asking])) assert.equal(reply.status, 200);
  assert.deepEqual(
    asked.sort((a, b) => a - b),
    [0, 1, 1],
    "two keys, and two tenants of one of them",
  );

  const kept = async (key: string, body: object, tenant?: string) => cacheOf(await ask(key, body, tenant));
  const several = { inputs: [[4, 5, 6], [7, 8, 9]] }; // prettier-ignore
  for (const body of [{ input: [4, 5, 7] }, several])
    for (const [key, tenant, expected] of [
      ["sk-a", "one", "miss"],
      ["sk-b", "one", "miss"],
      ["sk-a", "two", "hit"],
      ["sk-b", "one", "hit"],
    ] as const)
      assert.equal(await kept(key, body, tenant), expected, `${key} ${tenant}`);
  const text = { input: "the same text", model: "measure" };
  for (const [key, expected] of [["sk-a", "miss"], ["sk-b", "miss"], ["sk-a", "hit"], ["sk-b", "hit"]] as const)
    assert.equal(cacheOf(await server.post("/v1/embeddings", text, bearer(key))), expected); // prettier-ignore
});
