import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { createBatcher, greedy, type Batcher } from "sheaf";
import { workerThread } from "sheaf/node";
import type { ModuleSpec } from "../../dist/runners/contract/model-spec.js";
import { onnxFileSpec } from "../../dist/runners/onnx/file.js";
import { halfOf, numberOfHalf } from "../../dist/runners/tensors/half.js";
import {
  argMaxOfBatch,
  dynamicInt8,
  folder,
  halves,
  lyingBatchAxis,
  noisy,
  scaling,
  statefulBatchNorm,
  timeFirstLstm,
  trainingBatchNorm,
  twoInputs,
  write,
} from "./made-models.js";

after(() => rmSync(folder, { recursive: true }));

/** The batcher a server would make of the spec. */
async function served<Result>(
  { workerUrl, data, groupKey, maxBatchSize = 32 }: ModuleSpec,
  use: (infer: Batcher<unknown, unknown>) => Promise<Result>,
): Promise<Result> {
  const infer = createBatcher<unknown, unknown>(workerThread<unknown, unknown>(workerUrl, { data }), {
    policy: greedy(),
    maxBatchSize,
    groupKey,
  });
  try {
    return await use(infer);
  } finally {
    await infer.close();
  }
}

test("one flat float input and output: floats in, a vector out, batched", async () => {
  const spec = await onnxFileSpec(write("scale.onnx", scaling(["batch", 4])));
  assert.equal(spec.name, "scale");
  assert.deepEqual(spec.input, { kind: "floats", length: 4, name: "x" });
  assert.deepEqual(spec.output, { kind: "vector", length: 4, name: "y" });
  assert.equal(spec.maxBatchSize, undefined);
  assert.equal(spec.note, undefined);
  assert.equal(spec.warning, undefined);
  assert.ok(spec.sample instanceof Float32Array && spec.sample.length === 4);
  await served(spec, async (infer) => {
    const items = Array.from({ length: 20 }, (_, i) => Float32Array.of(i, 1, 2, 3));
    const results = await Promise.all(items.map(infer));
    assert.deepEqual(
      results,
      items.map((item) => item.map((value) => value * 2 + 1)),
    );
    assert.ok(infer.stats().batches <= 3, `${infer.stats().batches} batches`);
  });
});

test("several inputs of several types and a free axis: only items of one shape share a run", async () => {
  const spec = await onnxFileSpec(write("two.onnx", twoInputs()));
  assert.deepEqual(spec.input, {
    kind: "tensors",
    tensors: [
      { name: "ids", datatype: "INT64", shape: [null] },
      { name: "bias", datatype: "FP32", shape: [4] },
    ],
    hasBatchAxis: true,
  });
  assert.deepEqual(spec.output, {
    kind: "tensors",
    tensors: [
      { name: "vector", datatype: "FP32", shape: [4] },
      { name: "next", datatype: "INT64", shape: [null] },
    ],
    hasBatchAxis: true,
  });
  const item = (ids: bigint[]) => ({
    ids: BigInt64Array.from(ids),
    "shape:ids": Int32Array.of(ids.length),
    bias: Float32Array.of(10, 20, 30, 40),
  });
  // The ids and the four numbers of the bias.
  assert.deepEqual([[1n], [1n, 2n, 3n]].map((ids) => spec.weigh?.(item(ids))), [5, 7]); // prettier-ignore
  await served(spec, async (infer) => {
    const sizes: number[] = [];
    infer.subscribe(({ size }) => sizes.push(size));
    const all = Array.from({ length: 12 }, (_, i) => item(i % 2 === 0 ? [1n, 2n] : [7n]));
    const results = (await Promise.all(all.map(infer))) as Record<string, unknown>[];
    results.forEach((result, i) => {
      assert.deepEqual(result["next"], i % 2 === 0 ? BigInt64Array.of(2n, 3n) : BigInt64Array.of(8n));
      assert.deepEqual(result["shape:next"], Int32Array.of(i % 2 === 0 ? 2 : 1));
      const first = i % 2 === 0 ? 4 / 8 + 8 / 8 : 28 / 8;
      assert.equal((result["vector"] as Float32Array)[0], 10 + first);
    });
    assert.ok(sizes.length >= 2 && sizes.every((size) => size <= 6), `batches of ${sizes}`);
    await assert.rejects(infer(item([99n])), /indices element out of data bounds/);
    assert.ok(await infer(item([3n])), "the worker serves on after a failed run");
  });
});

test("a batch axis that is fixed at 1 cannot be batched; its note says so, and it is served one by one", async () => {
  const spec = await onnxFileSpec(write("fixed.onnx", scaling([1, 3])));
  assert.deepEqual(spec.input, { kind: "floats", length: 3, name: "x" });
  assert.equal(spec.maxBatchSize, 1);
  assert.match(
    spec.note ?? "",
    /cannot be batched, as its batch axis is fixed at 1 \(axis 0 of x\): items run one by one/,
  );
  await served(spec, async (infer) => {
    const results = await Promise.all([Float32Array.of(1, 2, 3), Float32Array.of(4, 5, 6)].map(infer));
    assert.deepEqual(results, [Float32Array.of(3, 5, 7), Float32Array.of(9, 11, 13)]);
  });
});

test("a model without a batch axis takes whole tensors, one by one", async () => {
  const spec = await onnxFileSpec(write("whole.onnx", scaling([2, "width"])));
  assert.deepEqual(spec.input, {
    kind: "tensors",
    tensors: [{ name: "x", datatype: "FP32", shape: [2, null] }],
    hasBatchAxis: false,
  });
  assert.equal(spec.maxBatchSize, 1);
  assert.match(spec.note ?? "", /axis 0 of x is fixed at 2/);
  const scalar = await onnxFileSpec(write("scalar.onnx", scaling([])));
  assert.deepEqual(scalar.input, {
    kind: "tensors",
    tensors: [{ name: "x", datatype: "FP32", shape: [] }],
    hasBatchAxis: false,
  });
  await served(scalar, async (infer) => {
    assert.deepEqual(await infer({ x: Float32Array.of(20) }), { y: Float32Array.of(41) });
  });
});

test("a batch axis that only looks free is found out and served one by one", async () => {
  const spec = await onnxFileSpec(write("lying.onnx", lyingBatchAxis()));
  assert.equal(spec.maxBatchSize, 1);
  assert.match(spec.note ?? "", /cannot be batched, as it fails for two items at once/);
  await served(spec, async (infer) => {
    assert.deepEqual(await infer(Float32Array.of(1, 2, 3, 4)), Float32Array.of(1, 2, 3, 4));
  });
});

test("dynamic int8 of free floats is caught: one large input would make zeros of the others, so items run one by one", async () => {
  const path = write("int8.onnx", dynamicInt8());
  const single = await onnxFileSpec(path);
  assert.deepEqual([single.selfTest, single.maxBatchSize], ["dependent", 1]);
  const item = Float32Array.from({ length: 8 }, (_, i) => Math.sin(i));
  const [lonelyItem, beside] = await served(single, async (infer) => [
    await infer(item),
    (await infer.many([item, new Float32Array(8).fill(1e6), item]))[2],
  ]);
  assert.deepEqual(beside, lonelyItem);

  const batched = await onnxFileSpec(path, { batchDependent: "batch" });
  assert.match(
    batched.note ?? "",
    /results depend on their batch-mates: in a batch they differ from those of single items \(by up to 100 %\)/,
  );
  assert.match(batched.note ?? "", /BATCH_DEPENDENT=batch/);
  assert.ok(batched.warning !== undefined && batched.note?.includes(batched.warning));
  assert.deepEqual([batched.selfTest, batched.maxBatchSize], ["dependent", undefined]);
  const exact = await onnxFileSpec(path, { batchDependent: "exact" });
  assert.equal(exact.maxBatchSize, 1);
  assert.match(exact.note ?? "", /items run one by one \(BATCH_DEPENDENT=exact\)/);

  const small = Float32Array.from({ length: 8 }, (_, i) => i / 100);
  const large = Float32Array.from({ length: 8 }, (_, i) => i * 10);
  const [alone, together] = await served(batched, async (infer) => {
    const lonely = await infer(small);
    const [first] = await infer.many([small, large]);
    return [lonely, first];
  });
  assert.notDeepEqual(alone, together);
  const [exactAlone, exactTogether] = await served(exact, async (infer) => [
    await infer(small),
    (await infer.many([small, large]))[0],
  ]);
  assert.deepEqual(exactAlone, exactTogether);
});

const dependentModels: [string, Uint8Array, RegExp][] = [
  ["batch normalisation in training mode", trainingBatchNorm(), /they differ from those of single items \(by up to 100 %\)/],
  ["an argmax over the batch axis", argMaxOfBatch(), /whole numbers, texts or lengths change/],
  ["a time-first LSTM", timeFirstLstm(), /they differ from those of single items \(by up to \d+ %\)/],
]; // prettier-ignore
for (const [what, model, warning] of dependentModels)
  test(`${what} is found out and runs one by one, unless BATCH_DEPENDENT=batch`, async () => {
    const path = write("dependent.onnx", model);
    const single = await onnxFileSpec(path);
    assert.deepEqual([single.selfTest, single.maxBatchSize], ["dependent", 1]);
    assert.match(single.warning!, warning);
    assert.ok(single.note!.includes(single.warning!));
    assert.equal((await onnxFileSpec(path, { batchDependent: "batch" })).maxBatchSize, undefined);
    assert.equal((await onnxFileSpec(path, { batchDependent: "exact" })).maxBatchSize, 1);
    assert.equal((await onnxFileSpec(path, { maxBatchSize: 2 })).maxBatchSize, 1, "in batches of two too");
  });

for (const [what, model] of [
  ["adds noise", noisy()],
  ["changes its own weights with every run", statefulBatchNorm()],
] as const)
  test(`a model that ${what} is not deterministic, and is not blamed for its batches`, async () => {
    const spec = await onnxFileSpec(write("noisy.onnx", model), { batchDependent: "exact" });
    assert.deepEqual([spec.selfTest, spec.maxBatchSize], ["not-deterministic", undefined]);
    assert.match(spec.warning!, /^It is not deterministic: an item that ran alone/);
  });

test("exact changes nothing for a model whose results do not depend on their batch-mates", async () => {
  const spec = await onnxFileSpec(write("steady.onnx", scaling(["n", 4])), { batchDependent: "exact" });
  assert.equal(spec.maxBatchSize, undefined);
});

test("a missing file, a broken file and an unknown type are refused by name", async () => {
  await assert.rejects(onnxFileSpec(join(folder, "absent.onnx")), /absent\.onnx: there is no such file/);
  await assert.rejects(
    onnxFileSpec(write("broken.onnx", "not a model")),
    /broken\.onnx cannot be served: .*[Pp]rotobuf/,
  );
  const cut = scaling(["batch", 4]).subarray(0, 60);
  await assert.rejects(onnxFileSpec(write("cut.onnx", cut)), /cut\.onnx cannot be served/);
});

test("halves are their bits, batched, and the self-test compares them as numbers", async () => {
  const spec = await onnxFileSpec(write("halves.onnx", halves()));
  const tensor = (name: string): object => ({ name, datatype: "FP16", shape: [4] });
  assert.deepEqual([spec.input, spec.output].map((kind) => kind.kind === "tensors" && kind.tensors), [[tensor("x")], [tensor("y")]]); // prettier-ignore
  assert.equal(spec.selfTest, "independent");
  await served(spec, async (infer) => {
    const numbers = [0, 0.5, -3, 1000];
    const items = Array.from({ length: 10 }, (_, i) => ({ x: Uint16Array.from(numbers, (n) => halfOf(n + i)) }));
    const results = (await Promise.all(items.map((item) => infer(item as never)))) as unknown as { y: Uint16Array }[];
    assert.deepEqual(
      results.map(({ y }) => Array.from(y, numberOfHalf)),
      items.map((_, i) => numbers.map((n) => (n + i) * 2 + 1)),
    );
  });
});
