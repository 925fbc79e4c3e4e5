// NVIDIA's and KServe's own clients of the Open Inference Protocol, against the built server.
import assert from "node:assert/strict";
import { test } from "node:test";
import { runPython } from "./lib/programs.mjs";
import { skipWithoutPython } from "./lib/python.mjs";
import { serveWithGrpc } from "./lib/serving.mjs";

const rows = Array.from({ length: 3 }, (_, i) =>
  Array.from({ length: 768 }, (_, j) => Math.fround(Math.sin(i * 768 + j))),
);
const texts = ["The cat sits outside", "A man is playing guitar", "Straße, 東京, 😀"];

test(
  "tritonclient and kserve: JSON and binary tensors are /infer's, bit for bit",
  { skip: skipWithoutPython },
  async (t) => {
    const { url, grpcAddress } = await serveWithGrpc(t, "mlp", "use-lite");
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
    const { ready, ...overGrpc } = await runPython("kserve_grpc_client.py", [grpcAddress], { rows, texts });
    assert.deepEqual([ready, overGrpc], [[true, true], expected]);
    assert.deepEqual(tritonclient.unready, [false, false]);
    checkManagement(tritonclient);
    const grpc = await runPython("triton_grpc_client.py", [grpcAddress], { rows, texts });
    for (const [kind, outputs] of Object.entries(grpc.mlp))
      assert.equal(outputs, expected.mlp, `mlp over gRPC, ${kind}`);
    assert.equal(grpc["use-lite"].binary, expected["use-lite"]);
    for (const [i, streamed] of grpc.stream.entries())
      if (i === 7) assert.match(streamed, /no model "nobody"/);
      else assert.equal(streamed, expected.mlp, `reply ${i} of the stream`);
    assert.deepEqual(grpc.ready, [true, true, true, true]);
    assert.deepEqual([grpc.server, grpc.config, grpc.index, grpc.statistics], ["sheaf", 32, ["mlp", "use-lite"], 2]);
    assert.match(grpc.errors.unknown, /NOT_FOUND.*no model "nobody"/);
    assert.match(grpc.errors.shape, /INVALID_ARGUMENT.*768/);
    assert.match(grpc.errors["shared memory"], /UNIMPLEMENTED/);
    for (const name of ["unknown", "config"]) assert.match(tritonclient.errors[name], /no model "nobody"/, name);
    assert.match(tritonclient.errors.statistics, /version/);
    assert.match(tritonclient.errors.shape, /768/);
  },
);

/** What Triton's clients ask besides: each model had got three requests of three items. */
function checkManagement({ server, config: [config, ofVersion], index, statistics: [one, ofOneVersion, all] }) {
  assert.equal(server.name, "sheaf");
  assert.ok(server.extensions.includes("statistics"));
  assert.deepEqual([config.name, config.max_batch_size], ["mlp", 32]);
  assert.deepEqual(config.input, [{ name: "input", data_type: "TYPE_FP32", dims: [768] }]);
  assert.deepEqual(config.output, [{ name: "output", data_type: "TYPE_FP32", dims: [768] }]);
  assert.equal(config.dynamic_batching.default_queue_policy.max_queue_size, 1000);
  assert.deepEqual(ofVersion, config);
  const entry = (name) => ({ name, version: "1", state: "READY", reason: "" });
  assert.deepEqual(index, [entry("mlp"), entry("use-lite")]);
  const [mlp] = one.model_stats;
  assert.deepEqual([mlp.name, mlp.inference_count], ["mlp", 9]);
  assert.deepEqual([mlp.inference_stats.success.count, mlp.inference_stats.fail.count], [3, 0]);
  const rowsRun = mlp.batch_stats.map(({ batch_size: size, compute_infer: { count } }) => size * count);
  assert.equal(rowsRun.reduce((sum, rows) => sum + rows, 0), 9); // prettier-ignore
  assert.deepEqual(ofOneVersion, one);
  assert.deepEqual(all.model_stats.map(({ name, inference_count: count }) => [name, count]), [["mlp", 9], ["use-lite", 9]]); // prettier-ignore
}

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
