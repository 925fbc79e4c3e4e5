import assert from "node:assert/strict";
import { test } from "node:test";
import { Tensor, type InferenceSession } from "../../../dist/runners/onnx/runtime.js";
import { WebGpuSession } from "../../../dist/runners/onnx/webgpu-session.js";

/** A session that gives its input back, and keeps what it was given. */
function echo(shape: readonly (string | number)[], seen: Tensor[]): InferenceSession {
  const metadata = [{ name: "x", isTensor: true, type: "float32", shape }];
  return {
    inputNames: ["x"],
    outputNames: ["x"],
    inputMetadata: metadata,
    outputMetadata: metadata,
    run: async ({ x }: Record<string, Tensor>) => {
      seen.push(x!);
      return { x };
    },
    release: async () => undefined,
  } as unknown as InferenceSession;
}

test("a batch is filled up to the next size with its last row, and the filling is cut off again", async () => {
  const seen: Tensor[] = [];
  const session = new WebGpuSession(echo(["batch", 2], seen), [1, 2, 4]);
  const { x } = await session.run({ x: new Tensor("float32", Float32Array.of(1, 2, 3, 4, 5, 6), [3, 2]) }, ["x"]);
  assert.deepEqual([seen[0]!.dims, seen[0]!.data], [[4, 2], Float32Array.of(1, 2, 3, 4, 5, 6, 5, 6)]);
  assert.deepEqual([x!.dims, x!.data], [[3, 2], Float32Array.of(1, 2, 3, 4, 5, 6)]);
});

test("texts and whole numbers are filled up as well", async () => {
  const seen: Tensor[] = [];
  const session = new WebGpuSession(echo(["batch"], seen), [4]);
  const { x } = await session.run({ x: new Tensor("string", ["a", "b"], [2]) }, ["x"]);
  assert.deepEqual(
    [seen[0]!.data, x!.data],
    [
      ["a", "b", "b", "b"],
      ["a", "b"],
    ],
  );
  await session.run({ x: new Tensor("int64", BigInt64Array.of(7n), [1]) }, ["x"]);
  assert.deepEqual(seen[1]!.data, BigInt64Array.of(7n, 7n, 7n, 7n));
});

test("a batch of one of the sizes, a larger one and a model without a batch axis go as they are", async () => {
  const seen: Tensor[] = [];
  const tensor = (rows: number): Tensor => new Tensor("float32", new Float32Array(rows), [rows, 1]);
  const batched = new WebGpuSession(echo(["batch", 1], seen), [1, 2]);
  const whole = new WebGpuSession(echo([3, 1], seen), [1, 2, 4]);
  const sent = [tensor(2), tensor(5), tensor(3)];
  await batched.run({ x: sent[0]! }, ["x"]);
  await batched.run({ x: sent[1]! }, ["x"]);
  await whole.run({ x: sent[2]! }, ["x"]);
  assert.ok(seen.every((tensor, i) => tensor === sent[i]));
});
