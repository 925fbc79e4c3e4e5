import assert from "node:assert/strict";
import { test } from "node:test";
import { builtinModels } from "../../dist/runners/builtin.js";
import type { ModuleSpec } from "../../dist/runners/contract/model-spec.js";
import { resolveModel } from "../../dist/runners/resolve-model.js";
import { scaling, write } from "./made-models.js";

test("built-in names, and an argument of no known kind", async () => {
  const { note, ...mlp } = builtinModels.mlp();
  assert.deepEqual(await resolveModel("mlp"), { ...mlp, device: "cpu", note: `Runs on cpu. ${note}` });
  await assert.rejects(resolveModel("use-light"), /There is no model use-light: name a built-in one \(use-lite, mlp\)/);
  await assert.rejects(resolveModel("constructor"), /There is no model constructor/);
  await assert.rejects(resolveModel(write("notes.txt", "")), /notes\.txt is neither an \.onnx file nor/);
});

test("a worker module takes and gives any JSON value", async () => {
  const spec = await resolveModel(write("shout.mjs", "export default {}"));
  assert.equal(spec.name, "shout");
  assert.deepEqual([spec.input, spec.output], [{ kind: "json" }, { kind: "json" }]);
});

test("a device that does not exist is refused by name", async () => {
  await assert.rejects(resolveModel("mlp", { device: "tpu" }), {
    name: "RangeError",
    message: 'INFERENCE_DEVICE must be auto, or cpu, webgpu, cuda or cuda:N, several with commas, got "tpu"',
  });
});

test("devices are tried in turn, and the one that serves is named", async () => {
  const spec = (await resolveModel("mlp", { device: "cuda:7,cpu" })) as ModuleSpec;
  assert.match(spec.note ?? "", /Runs on cpu; refused: cuda:7: ./);
  assert.equal((spec.data as { device: string }).device, "cpu");
  const file = write("device.onnx", scaling(["batch", 4]));
  const fileSpec = (await resolveModel(file, { device: "cuda:7,cpu" })) as ModuleSpec;
  assert.match(fileSpec.note ?? "", /^Runs on cpu; refused: cuda:7: .*\.$/);
  assert.equal(fileSpec.device, "cpu");
  await assert.rejects(
    resolveModel("use-lite", { device: "cuda:7" }),
    /use-lite cannot be served on INFERENCE_DEVICE cuda:7: cuda:7: ./,
  );
});
