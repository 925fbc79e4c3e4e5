import assert from "node:assert/strict";
import { test } from "node:test";
import { workerThread } from "sheaf/node";
import { compareDevices, gainOf } from "../../../dist/runners/devices/compare-devices.js";
import { devicesOf } from "../../../dist/runners/contract/devices.js";
import { sizeFor } from "../../../dist/runners/onnx/fixed-sizes.js";
import { doubling } from "../../../dist/shared/doubling.js";
import { trialItems } from "../../../dist/runners/self-test/sample-items.js";
import { builtinModels } from "../../../dist/runners/builtin.js";
import { resolveModel } from "../../../dist/runners/resolve-model.js";
import { write } from "../made-models.js";

test("a setting of devices names one, several in turn, or auto alone", () => {
  assert.deepEqual(devicesOf(" WebGPU, cuda:1 ,cpu"), ["webgpu", "cuda:1", "cpu"]);
  assert.deepEqual(devicesOf("auto"), ["auto"]);
  for (const wrong of ["auto,cpu", "webgpu:1", "gpu", ""]) assert.throws(() => devicesOf(wrong), RangeError);
});

test("a count is filled up to the next size, and one above them all stays as it is", () => {
  assert.deepEqual(doubling(1, 1), [1]);
  assert.deepEqual(doubling(1, 32), [1, 2, 4, 8, 16, 32]);
  assert.deepEqual(doubling(16, 100), [16, 32, 64, 100]);
  assert.deepEqual(
    [1, 3, 5, 6, 7].map((count) => sizeFor(doubling(1, 6), count)),
    [1, 4, 6, 6, 7],
  );
});

test("a worker thread refuses WebGPU, and says why", async () => {
  const { workerUrl, data } = builtinModels.mlp({ device: "webgpu" });
  const executor = workerThread<never, never>(workerUrl, { data });
  await assert.rejects(
    executor.ready(),
    /it runs in worker processes only .*two threads that use WebGPU at once crash/,
  );
  await executor.close();
});

test("auto takes a device that gives the CPU's results and is faster, and says why it does not take another", () => {
  const same = { size: 32, differenceRate: 2e-6, deviceMs: 2, cpuMs: 18.04 };
  assert.equal(gainOf(same), "32 items in 2 ms, on the CPU in 18 ms");
  assert.throws(() => gainOf({ ...same, size: 1, deviceMs: 20 }), {
    message: "it is no faster: 1 item in 20 ms, on the CPU in 18 ms",
  });
  assert.throws(() => gainOf({ ...same, differenceRate: 0.02 }), { message: "its results are not the CPU's (by 2 %)" });
  assert.throws(() => gainOf({ ...same, differenceRate: Infinity }), /not the CPU's \(whole numbers, texts or lengths/);
});

const scaled = (factor: number): URL =>
  new URL(
    `file://${write(`scaled-${factor}.mjs`, `export default { run: (items) => items.map((item) => item.map((x) => x * ${factor})) };`)}`,
  );

test("a device that computes something else is refused whatever its speed", async () => {
  const mlp = builtinModels.mlp();
  const [right, wrong] = [scaled(2), scaled(2.1)].map((workerUrl) => ({ ...mlp, workerUrl, data: undefined }));
  await assert.rejects(
    compareDevices(wrong!, right!, { device: "cuda", maxBatchSize: 3 }),
    /its results are not the CPU's \(by 4\.8 %\)/,
  );
});

test("trial items are of the model's kind, as many as asked for, or its own sample", () => {
  assert.deepEqual(new Set(trialItems(builtinModels["use-lite"](), 32)).size, 3);
  assert.equal((trialItems(builtinModels.mlp(), 2)![1] as Float32Array).length, 768);
  const tensors = { ...builtinModels.mlp(), input: { kind: "tensors", tensors: [] } as const };
  assert.equal(trialItems(tensors, 2), undefined);
  assert.deepEqual(trialItems({ ...tensors, sample: 7 }, 2), [7, 7]);
});

test("where a worker module runs is its own affair: no device is tried for it", async () => {
  const spec = await resolveModel(write("own.mjs", "export default { run: (items) => items }"), { device: "webgpu" });
  assert.equal("device" in spec, false);
});
