import assert from "node:assert/strict";
import { test } from "node:test";
import { resolveModel } from "../../dist/runners/resolve-model.js";
import { JsonDemand } from "../../dist/server/contract/json-demand.js";
import { definitionOf } from "../../dist/server/models/worker-model.js";
import { defaultSettings } from "../../dist/settings/settings.js";
import { serving } from "./serving.js";

test("JSON is expected at first, and again once most replies are", () => {
  const demand = new JsonDemand();
  assert.ok(demand.isHigh());
  for (let i = 0; i < 100; i++) demand.note(false);
  assert.ok(!demand.isHigh());
  for (let i = 0; i < 100; i++) demand.note(i % 4 > 0);
  assert.ok(demand.isHigh());
});

test("replies hold the same numbers as JSON and as bytes, whichever the workers expect", async (t) => {
  const definition = definitionOf(await resolveModel("mlp", {}), defaultSettings);
  const server = await serving(t, [definition]);
  await server.ready();
  const demand = definition.jsonDemand!;
  const input = Array.from({ length: 768 }, (_, i) => Math.sin(i));
  const asJson = async (): Promise<number[]> => (await server.post("/infer", input)).json.output as number[];
  const asBytes = async (): Promise<Float32Array> => {
    const outputs = [{ name: "output", parameters: { binary_data: true } }];
    const inputs = [{ name: "input", datatype: "FP32", shape: [1, 768], data: input }];
    const response = await fetch(`${server.url}/v2/models/mlp/infer`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ inputs, outputs }),
    });
    const bytes = await response.arrayBuffer();
    return new Float32Array(bytes.slice(Number(response.headers.get("inference-header-content-length"))));
  };
  const expected = await asBytes();
  assert.equal(expected.length, 768);
  assert.ok(demand.isHigh());
  assert.deepEqual(Float32Array.from(await asJson()), expected);
  for (let i = 0; i < 100; i++) demand.note(false);
  assert.ok(!demand.isHigh());
  assert.deepEqual(Float32Array.from(await asJson()), expected);
  assert.deepEqual(await asBytes(), expected);
});
