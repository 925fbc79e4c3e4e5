import assert from "node:assert/strict";
import { after, test } from "node:test";
import { builtinModels } from "../../dist/runners/builtin.js";
import { loadMlp, mlpWeights, runMlp } from "../../dist/runners/mlp-worker.js";
import { joinRows } from "../../dist/runners/tensors/join-rows.js";

const session = await loadMlp({});
after(() => session.release());

const rows = Array.from({ length: 5 }, (_, row) =>
  Float32Array.from({ length: 768 }, (_, i) => Math.sin(i * (row + 1))),
);

test("each row's result is its own, in a batch as alone", async () => {
  const together = await runMlp(rows, session);
  for (const [i, row] of rows.entries()) {
    const [alone] = await runMlp([row], session);
    assert.deepEqual(builtinModels.mlp().output, { kind: "vector", length: alone?.length });
    alone?.forEach((value, j) => assert.ok(Math.abs(value - (together[i]?.[j] as number)) < 1e-5));
  }
  assert.notDeepEqual(together[0], together[1]);
});

test("the weights are the same each time, and another seed gives others", () => {
  assert.deepEqual(mlpWeights(), mlpWeights());
  assert.notDeepEqual(mlpWeights(1), mlpWeights(2));
});

test("outputs are of the inputs' size: neither vanishing nor exploding", async () => {
  const [output] = await runMlp([rows[0] as Float32Array], session);
  const size = Math.hypot(...(output as Float32Array)) / Math.hypot(...(rows[0] as Float32Array));
  assert.ok(size > 0.2 && size < 5, String(size));
});

test("rows that stand back to back are joined without a copy, others by copying", () => {
  const block = Float32Array.from({ length: 6 }, (_, i) => i);
  const views = [block.subarray(0, 3), block.subarray(3, 6)];
  assert.equal(joinRows(views).buffer, block.buffer);
  assert.deepEqual([...joinRows(views)], [0, 1, 2, 3, 4, 5]);
  assert.deepEqual([...joinRows([views[1] as Float32Array, views[0] as Float32Array])], [3, 4, 5, 0, 1, 2]);
});
