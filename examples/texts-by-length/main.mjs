// Short and long texts in one batch: without passes all would be padded to the longest. model.onnx is a tiny encoder with
// made-up weights whose tokens are bytes.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { createBatcher } from "sheaf";
import { workerThread } from "sheaf/node";

// ONNX Runtime sends telemetry unless this is set before it loads, here: a worker's own process.env does not reach it.
process.env.ORT_DISABLE_TELEMETRY ??= "1";

const executor = workerThread(new URL("./worker.mjs", import.meta.url), {
  data: { file: fileURLToPath(new URL("./model.onnx", import.meta.url)) },
});
const embed = createBatcher(executor, {
  maxBatchSize: 128,
  // The batcher learns what length costs. The worker keeps short texts apart from long ones, so that none waits for another.
  weigh: (text) => text.length,
  batchWeight: "apart",
});
await embed.ready();

const texts = Array.from({ length: 500 }, (_, i) => "some words of a text ".repeat(1 + (i % 12 === 0 ? 11 : i % 3)));
const together = await Promise.all(texts.map((text) => embed(text)));

// The company of a text makes no difference.
for (const i of [0, 1, 2, 12, 499]) {
  const alone = await embed(texts[i]);
  alone.forEach((value, k) => assert.ok(Math.abs(value - together[i][k]) < 1e-5));
}
const { batches, items } = embed.stats();
console.log(`${items.ok} texts in ${batches} batches, each cut into passes of like length`);
assert.ok(batches < 200);
await embed.close();
