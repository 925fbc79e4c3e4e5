// A Python worker with NumPy: what run gets is one array, and what it returns may be an array or rows of any kind.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createBatcher } from "sheaf";
import { workerCommand } from "sheaf/node";
import { pythonWithClients, skipWithoutPython } from "./lib/python.mjs";

const script = fileURLToPath(new URL("python/arrays.py", import.meta.url));

function open(t, how, inputs = "float32[4]", outputs = inputs) {
  const executor = workerCommand({
    command: pythonWithClients(),
    args: [script, how, inputs, outputs],
    log: console.log,
  });
  const call = createBatcher(executor, { maxBatchSize: 64 });
  t.after(() => call.close());
  return { executor, call };
}
const row = (first) => Float32Array.of(first, 2, 3, 4);

describe("with NumPy", { skip: skipWithoutPython }, () => {
  test("an item alone and one of 64 come as rows of one writable array", async (t) => {
    const { call } = open(t, "add");
    assert.deepEqual(await call(row(1)), Float32Array.of(2, 3, 4, 5));
    const results = await call.many(Array.from({ length: 64 }, (_, i) => row(i)));
    assert.deepEqual(results.map(([first]) => first), Array.from({ length: 64 }, (_, i) => i + 1)); // prettier-ignore
  });

  test("every axis and type arrives as declared: images, booleans, 64-bit integers", async (t) => {
    const image = Uint8Array.from({ length: 12 }, (_, i) => i);
    assert.deepEqual(
      await open(t, "add", "uint8[2,2,3]").call(image),
      image.map((value) => value + 1),
    );
    assert.deepEqual(await open(t, "not", "bool[3]").call(Uint8Array.of(1, 0, 1)), Uint8Array.of(0, 1, 0));
    assert.deepEqual(
      await open(t, "add", "int64[1]").call(BigInt64Array.of(2n ** 60n)),
      BigInt64Array.of(2n ** 60n + 1n),
    );
  });

  test("a result of another type that is not contiguous becomes what is declared", async (t) => {
    assert.deepEqual(await open(t, "reversed").call(row(1)), Float32Array.of(4, 3, 2, 1));
  });

  test("a row of a wrong shape and an exception among the rows fail alone", async (t) => {
    const { call } = open(t, "rows");
    const outcomes = await call.settle([row(1), row(7), row(8), row(2)]);
    assert.deepEqual(outcomes.map(({ status }) => status), ["fulfilled", "rejected", "rejected", "fulfilled"]); // prettier-ignore
    assert.deepEqual(outcomes[3].value, row(2));
    assert.match(outcomes[1].reason.message, /results have the shape \[1, 1\]; for float32\[4\] it must be \[1, 4\]/);
    assert.equal(outcomes[2].reason.code, "INVALID_INPUT");
  });

  test("NaN and infinities travel in an array; in JSON they fail their item", async (t) => {
    const odd = Float32Array.of(NaN, Infinity, -Infinity, -0);
    assert.deepEqual(await open(t, "reversed").call(odd), Float32Array.of(-0, -Infinity, Infinity, NaN));
    const { call } = open(t, "json", "float32[4]", "json");
    const [good, bad] = await call.settle([row(1), odd]);
    assert.deepEqual(good.value, { sum: 10, row: [1, 2, 3, 4], count: 4 });
    assert.match(bad.reason.message, /not JSON compliant/);
  });

  test("a column of numbers is a JSON number for each item", async (t) => {
    assert.deepEqual(await open(t, "column", "float32[4]", "json").call.many([row(1), row(2)]), [10, 11]);
  });

  test('outputs="embedding" takes its length from a sample that is an array of three items', async (t) => {
    const { call, executor } = open(t, "add", "float32[4]", "embedding");
    await call.ready();
    assert.deepEqual(executor.declaration.outputs, [{ kind: "tensor", dtype: "float32", shape: [4] }]);
    assert.equal(executor.declaration.sample.length, 3);
    assert.equal((await call(row(1))).length, 4);
  });
});
