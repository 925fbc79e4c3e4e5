import assert from "node:assert/strict";
import { test } from "node:test";
import type { ModelDefinition } from "../../dist/index.js";
import { doubling, echo, gated, measuringTexts, serving } from "./serving.js";

test("one input, bare or as `input`, gets its own result and how it came about", async (t) => {
  const server = await serving(t, [doubling()]);
  for (const body of [[1, 2, 3], { input: [1, 2, 3] }]) {
    const { status, json, headers } = await server.post("/infer", body);
    assert.equal(status, 200);
    assert.deepEqual(json.output, [2, 4, 6]);
    assert.equal(json.model, "double");
    assert.equal(json.batch_size, 1);
    assert.ok(json.queue_ms >= 0 && json.run_ms >= 0);
    assert.ok(json.latency_ms >= json.queue_ms + json.run_ms - 0.01, "what is left is reading, checking and the reply");
    assert.equal(json.request_id, headers.get("x-request-id"));
  }
});

test("a model is chosen by its name in the path; without one the first serves", async (t) => {
  const server = await serving(t, [doubling(), measuringTexts()]);
  assert.equal((await server.post("/infer", [1, 2, 3])).json.model, "double");
  const { json } = await server.post("/infer/measure", JSON.stringify("some words"));
  assert.deepEqual([json.model, json.output, json.tokens], ["measure", [10, 115], 2]);
});

test("several inputs get results in order, and a bad one its error in its place", async (t) => {
  const model = doubling();
  const server = await serving(t, [model]);
  const { status, json } = await server.post("/infer", { inputs: [[1, 1, 1], [1], [3, 3, 3], ["x", 1, 1]] });
  assert.equal(status, 200);
  assert.deepEqual([json.outputs[0], json.outputs[2]], [[2, 2, 2], [6, 6, 6]]); // prettier-ignore
  assert.deepEqual(json.outputs[1].error, {
    code: "INVALID_INPUT",
    message: "inputs[1] must be an array of 3 numbers, got an array of 1.",
  });
  assert.match(json.outputs[3].error.message, /^inputs\[3\]\[0\] must be a finite float32 number, got "x"/);
  assert.equal(model.items, 2);
});

test("a result may be any JSON: null, and objects with fields that other models count with", async (t) => {
  const server = await serving(t, [echo]);
  for (const value of [null, { tokens: "0x10", truncated: 1 }, { tokens: [7] }, { tokens: null }, [], ""]) {
    const { status, json } = await server.post("/infer", { input: value });
    assert.deepEqual([status, json.output, json.tokens, json.truncated], [200, value, undefined, undefined]);
    assert.deepEqual((await server.post("/infer", { inputs: [value, value] })).json.outputs, [value, value]);
  }
});

test("an item that the model fails has its error in its place, and its batch-mates their results", async (t) => {
  const model: ModelDefinition = {
    ...doubling(),
    run: (items: Float32Array[]) => items.map((item) => (item[0] === 7 ? new Error("seven is bad") : item)),
  };
  const server = await serving(t, [model]);
  const { status, json } = await server.post("/infer", { inputs: [[1, 0, 0], [7, 0, 0]] }); // prettier-ignore
  assert.equal(status, 200);
  assert.deepEqual(json.outputs[0], [1, 0, 0]);
  assert.equal(json.outputs[1].error.code, "MODEL_ERROR");
  assert.match(json.outputs[1].error.message, /seven is bad/);
});

test("a client that hangs up is cancelled: its waiting item is never run", async (t) => {
  const model = gated();
  let items = 0;
  const run = model.run as (batch: Float32Array[]) => Promise<Float32Array[]>;
  const counted = { ...model, run: (batch: Float32Array[]) => ((items += batch.length), run(batch)) };
  const server = await serving(t, [counted], { maxBatchSize: 1 });
  const first = server.post("/infer", [1, 1, 1]);
  await model.started;
  const controller = new AbortController();
  const hangingUp = server.post("/infer", [2, 2, 2], {}, controller.signal);
  const served = server.models.all[0]!;
  while (served.stats().queued === 0) await new Promise((resolve) => setImmediate(resolve));
  controller.abort();
  await assert.rejects(hangingUp);
  while (served.stats().queued > 0) await new Promise((resolve) => setImmediate(resolve));
  model.release();
  assert.equal((await first).status, 200);
  assert.equal(items, 1);
  assert.equal(served.stats().items.aborted, 1);
});
