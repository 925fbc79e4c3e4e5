import assert from "node:assert/strict";
import { test } from "node:test";
import { builtinModels } from "../../dist/runners/builtin.js";
import { resolveModel } from "../../dist/runners/resolve-model.js";
import { write } from "./made-models.js";

test("built-in names, and what is none of the kinds there are", async () => {
  assert.deepEqual(await resolveModel("mlp"), builtinModels.mlp());
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
    message: 'INFERENCE_DEVICE must be cpu, cuda or cuda:N, or several of them with commas, got "tpu"',
  });
});
