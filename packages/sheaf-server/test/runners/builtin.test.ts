import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher, greedy } from "sheaf";
import { workerThread } from "sheaf/node";
import type mlpWorker from "../../dist/runners/mlp-worker.js";
import type useLiteWorker from "../../dist/runners/use-lite/use-lite-worker.js";
import type { UseLiteResult } from "../../dist/runners/use-lite/use-lite-worker.js";
import { builtinModels } from "../../dist/runners/builtin.js";
import { useLiteReference } from "./use-lite-reference.js";

test("use-lite in a worker thread: concurrent callers share batches and each gets its own reference vector", async () => {
  const { workerUrl, data, output } = builtinModels["use-lite"]();
  const embed = createBatcher(workerThread<typeof useLiteWorker>(workerUrl, { data: data as object }), {
    policy: greedy(),
  });
  try {
    await embed.ready();
    const results = await Promise.all(useLiteReference.map(({ text }) => embed(text)));
    useLiteReference.forEach(({ text, ids, vector }, i) => {
      const result = results[i] as UseLiteResult;
      assert.equal(result.vector.length, output.kind === "vector" ? output.length : 0);
      assert.deepEqual([result.tokens, result.truncated], [Math.min(128, ids.length), ids.length > 128]);
      const difference = vector.reduce(
        (most, value, j) => Math.max(most, Math.abs(value - (result.vector[j] as number))),
        0,
      );
      assert.ok(difference < 1e-5, `${JSON.stringify(text.slice(0, 40))}: ${difference}`);
    });
    assert.ok(embed.stats().batches < useLiteReference.length / 4, `${embed.stats().batches} batches`);
  } finally {
    await embed.close();
  }
});

test("mlp in a worker thread: floats in, floats out, each row its own", async () => {
  const { workerUrl, data } = builtinModels.mlp();
  const infer = createBatcher(workerThread<typeof mlpWorker>(workerUrl, { data: data as object }), {
    policy: greedy(),
  });
  try {
    const rows = Array.from({ length: 40 }, (_, row) =>
      Float32Array.from({ length: 768 }, (_, i) => Math.cos(i + row)),
    );
    const together = await Promise.all(rows.map(infer));
    const alone = await infer(rows[7] as Float32Array);
    assert.equal(alone.length, 768);
    alone.forEach((value, i) => assert.ok(Math.abs(value - (together[7]?.[i] as number)) < 1e-5));
    assert.notDeepEqual(together[7], together[8]);
  } finally {
    await infer.close();
  }
});
