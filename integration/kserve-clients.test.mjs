// NVIDIA's and KServe's own clients of the Open Inference Protocol, against the built server.
import assert from "node:assert/strict";
import { test } from "node:test";
import { runPython } from "./lib/programs.mjs";
import { skipWithoutPython } from "./lib/python.mjs";
import { serve } from "./lib/serving.mjs";

const rows = Array.from({ length: 3 }, (_, i) =>
  Array.from({ length: 768 }, (_, j) => Math.fround(Math.sin(i * 768 + j))),
);
const texts = ["The cat sits outside", "A man is playing guitar", "Straße, 東京, 😀"];

test(
  "tritonclient and kserve: JSON and binary tensors are /infer's, bit for bit",
  { skip: skipWithoutPython },
  async (t) => {
    const url = await serve(t, "mlp", "use-lite");
    const expected = { mlp: await bitsOf(url, "mlp", rows), "use-lite": await bitsOf(url, "use-lite", texts) };
    const { versions, tritonclient, kserve } = await runPython("kserve_clients.py", [url], { rows, texts });
    t.diagnostic(JSON.stringify(versions));
    for (const client of [tritonclient, kserve]) {
      assert.deepEqual(client.ready, client.ready.map(() => true)); // prettier-ignore
      for (const model of Object.keys(expected).filter((name) => name in client)) {
        assert.equal(client[model].json, expected[model], `${model} as JSON`);
        assert.equal(client[model].binary, expected[model], `${model} as bytes`);
      }
    }
    assert.match(tritonclient.errors.unknown, /no model "nobody"/);
    assert.match(tritonclient.errors.shape, /768/);
  },
);

/** The float32 bytes of all outputs, as base64. */
async function bitsOf(url, model, inputs) {
  const response = await fetch(`${url}/infer/${model}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ inputs }),
  });
  const { outputs } = await response.json();
  return Buffer.from(Float32Array.from(outputs.flat()).buffer).toString("base64");
}
