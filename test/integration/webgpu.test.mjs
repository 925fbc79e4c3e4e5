// Models on WebGPU, on a software Vulkan driver: results are the CPU's, alone and in batches, and a device that crashes takes
// its process with it alone. How fast a GPU is does not show here.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { runHandle } from "sheaf/executors";
import { compareResults } from "sheaf/internal/models";
import { workerProcess, workerThread } from "sheaf/node";
import { writeEncoderFolder } from "../support/encoder-folder.mjs";
import { OnnxGraph } from "../support/onnx-writer.mjs";
import { createServer } from "../../packages/sheaf-server/dist/index.js";
import { definitionOf } from "../../packages/sheaf-server/dist/server/models/worker-model.js";
import { defaultSettings } from "../../packages/sheaf-server/dist/settings/settings.js";
import { builtinModels } from "../../packages/sheaf-server/dist/runners/builtin.js";
import { resolveModel } from "../../packages/sheaf-server/dist/runners/resolve-model.js";
import { skipWithoutSoftwareGpu, softwareGpu } from "./lib/software-gpu.mjs";
import { untilTrue } from "./lib/until.mjs";

/** As a share of an output's largest value. */
const tolerance = 1e-5;

const folder = mkdtempSync(join(tmpdir(), "sheaf-webgpu-"));
after(() => rmSync(folder, { recursive: true }));
// Workers take over the environment of this process.
if (skipWithoutSoftwareGpu === false) Object.assign(process.env, softwareGpu);

const words = ["w0 w1 w2", "w3", "w4 w5 w6 w7 w8 w9 w10 w11 w12"];
const floats = (length) => [0, 1, 2].map((item) => Float32Array.from({ length }, (_, i) => Math.sin(i * 1.7 + item)));

/** Images of 3 × 16 × 16 → 10 scores: two convolutions, pooling, a dense layer. */
function imageModel() {
  const graph = new OnnxGraph();
  const weights = (name, axes) =>
    graph.constant(name, "float", axes, Float32Array.from({ length: axes.reduce((a, b) => a * b) }, (_, i) => Math.sin(i * 0.37) / 4)); // prettier-ignore
  const same = { pads: [1, 1, 1, 1] };
  const first = graph.node("Relu", [graph.node("Conv", ["image", weights("first", [8, 3, 3, 3])], same)]);
  const second = graph.node("Relu", [graph.node("Conv", [first, weights("second", [16, 8, 3, 3])], { ...same, strides: [2, 2] })]); // prettier-ignore
  const pooled = graph.node("Flatten", [graph.node("GlobalAveragePool", [second])]);
  const scores = graph.rename(graph.node("Gemm", [pooled, weights("dense", [16, 10])]), "scores");
  return graph.model({
    inputs: [{ name: "image", type: "float", axes: ["batch", 3, 16, 16] }],
    outputs: [{ name: scores, type: "float", axes: ["batch", 10] }],
  });
}

/** Results of items one by one, and of all of them in one batch. */
async function resultsOn(executor, items) {
  try {
    const run = async (batch) => Array.from(await executor.run(batch, runHandle({ size: batch.length })));
    await executor.ready();
    const alone = [];
    for (const item of items) alone.push(...(await run([item])));
    return { alone, together: await run(items) };
  } finally {
    await executor.close();
  }
}

async function assertAgrees({ onGpu, onCpu, items }) {
  const gpu = await resultsOn(workerProcess(onGpu.workerUrl, { data: onGpu.data }), items);
  const cpu = await resultsOn(workerThread(onCpu.workerUrl, { data: onCpu.data }), items);
  for (const way of ["alone", "together"]) {
    const pairs = gpu[way].map((result, i) => [result, cpu[way][i]]);
    const differences = Object.fromEntries(compareResults(pairs));
    const largest = Math.max(...Object.values(differences));
    assert.ok(largest <= tolerance, `${way}: ${JSON.stringify(differences)} above ${tolerance}`);
  }
}

/** Workers that start meanwhile find no driver. */
async function withoutDriver(use) {
  process.env.VK_ICD_FILENAMES = process.env.VK_DRIVER_FILES = "/nonexistent.json";
  try {
    await use();
  } finally {
    Object.assign(process.env, softwareGpu);
  }
}

describe("on WebGPU", { skip: skipWithoutSoftwareGpu }, () => {
  const onWebGpu = { device: "webgpu", maxBatchSize: 4 };
  const imagePath = join(folder, "image.onnx");
  let described;
  const imageOnGpu = () => {
    if (described === undefined) writeFileSync(imagePath, imageModel());
    return (described ??= resolveModel(imagePath, onWebGpu));
  };

  test("a folder model and an image model give what they give on the CPU, alone and in a batch", async () => {
    const shape = { layers: 1, width: 16, heads: 2, hidden: 32, vocabulary: 40, maxTokens: 16 };
    const encoder = writeEncoderFolder(join(folder, "encoder"), shape);
    const images = floats(3 * 16 * 16).map((values) => ({ image: values }));
    const models = [
      { onGpu: await resolveModel(encoder, onWebGpu), onCpu: await resolveModel(encoder), items: words },
      { onGpu: await imageOnGpu(), onCpu: await resolveModel(imagePath), items: images },
    ];
    for (const { onGpu, onCpu, items } of models) {
      assert.equal(onGpu.device, "webgpu");
      assert.equal(onGpu.selfTest, "independent");
      assert.match(onGpu.note, /^Runs on webgpu in software \(libvk_swiftshader\)\./);
      await assertAgrees({ onGpu, onCpu, items });
    }
  });

  test("mlp and use-lite give what they give on the CPU, alone and in a batch", async () => {
    const [onGpu, onCpu] = ["webgpu", "cpu"].map((device) => builtinModels.mlp({ maxBatchSize: 4, device }));
    await assertAgrees({ onGpu, onCpu, items: floats(768) });
    const workerUrl = new URL("lib/use-lite-cold-worker.mjs", import.meta.url);
    const useLite = (device) => ({ workerUrl, data: { device, maxBatchSize: 4 } });
    const texts = ["The cat sits outside.", "a", "Zebras stand still while the wind is calm."];
    await assertAgrees({ onGpu: useLite("webgpu"), onCpu: useLite("cpu"), items: texts });
  });

  test("a device that crashes ends its process alone: the server answers, and the model is started again", async (t) => {
    const settings = { ...defaultSettings, port: 0, logLevel: "silent", maxBatchSize: 4, warmupBatches: 1 };
    const spec = await imageOnGpu();
    const server = await createServer({ models: [definitionOf(spec, settings)], settings });
    t.after(() => server.close());
    const url = await server.listen();
    await server.ready();
    const health = async () => (await fetch(`${url}/health`)).json();
    const metrics = async () => (await fetch(`${url}/metrics`)).text();
    assert.deepEqual((await health()).models, [{ name: "image", state: "ready", device: "webgpu" }]);
    assert.match(await metrics(), /^sheaf_model_info\{batcher="image",device="webgpu"\} 1$/mu);
    const { data } = await (await fetch(`${url}/v1/models`)).json();
    assert.equal(data[0].device, "webgpu");
    const input = { image: [0, 1, 2].map((c) => Array.from({ length: 16 }, (_, y) => Array.from({ length: 16 }, (_, x) => c + y - x))) }; // prettier-ignore
    const infer = async () => {
      const reply = await fetch(`${url}/infer`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ input }) }); // prettier-ignore
      return { status: reply.status, ...(await reply.json()) };
    };
    const before = await infer();
    assert.equal(before.status, 200, JSON.stringify(before));
    const [{ pid }] = server.models.all[0].workers.instances();
    process.kill(pid, "SIGSEGV");
    await untilTrue(async () => /^sheaf_worker_restarts_total\{batcher="image"\} 1$/mu.test(await metrics()));
    const again = await infer();
    assert.deepEqual([again.status, again.output], [200, before.output]);
  });

  test("a run that fails on a device that is lost ends its process, which is replaced; on one that is there it only fails", async (t) => {
    const open = () => {
      const workerUrl = new URL("lib/failing-device-worker.mjs", import.meta.url);
      const executor = workerProcess(workerUrl);
      t.after(() => executor.close());
      return executor;
    };
    const fails = (executor, expected) =>
      assert.rejects(async () => executor.run([1], runHandle({ size: 1 })), expected);
    const there = open();
    await fails(there, { message: "the run failed" });
    assert.equal(there.restarts, 0);
    await withoutDriver(async () => {
      const lost = open();
      await fails(lost, { code: "WORKER_CRASHED", message: /The WebGPU device is lost: the run failed/ });
      await untilTrue(() => lost.restarts === 1);
    });
  });

  test("auto stays on the CPU, and says why it takes neither kind of GPU", async () => {
    const { device, note } = await resolveModel("mlp", { device: "auto" });
    assert.equal(device, "cpu");
    assert.match(note, /^Runs on cpu; refused: cuda: .+; webgpu: its only adapter computes in software \(libvk_swiftshader\)\./u); // prettier-ignore
  });

  test("without a driver webgpu,cpu falls back, and says why", async () => {
    await withoutDriver(async () => {
      const { device, note } = await resolveModel("mlp", { device: "webgpu,cpu" });
      assert.equal(device, "cpu");
      assert.match(note, /^Runs on cpu; refused: webgpu: no GPU with a Vulkan, Metal or Direct3D 12 driver was found/u);
    });
  });
});

test("npm run bench -- gpu measures without batching, with a window and with auto, and says where no GPU was", async () => {
  const bench = fileURLToPath(new URL("../../bench/gpu.mjs", import.meta.url));
  const args = [bench, "--tiny", "--device", "cpu", "--python", "/usr/bin/python3"];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 600_000 });
  const [, encoder, inPyTorch] = stdout.split(/^## An encoder$|^## The encoder in PyTorch$/mu);
  for (const section of [encoder, inPyTorch]) {
    assert.match(section ?? stdout, /s\(n\) = [\d.e-]+ ms \+ [\d.e-]+ ms · n/u);
  }
  for (const policy of ["unbatched", "fifo", "auto"])
    assert.match(encoder, new RegExp(`^\\| ${policy} +(?:\\| +\\d[\\d,.]* ){4}\\|$`, "mu"));
  assert.match(stdout, /\nNot shown on a real GPU\.\n$/);
});
