// ONNX Runtime blocks the thread that calls it. In a worker thread it blocks nobody, and concurrent calls share a run.
// model.onnx is a tiny classifier with made-up weights: 32 numbers in, the probabilities of 4 classes out.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { createBatcher } from "sheaf";
import { workerThread } from "sheaf/node";

// ONNX Runtime sends telemetry unless this is set before it loads, here: a worker's own process.env does not reach it.
process.env.ORT_DISABLE_TELEMETRY ??= "1";

const executor = workerThread(new URL("./worker.mjs", import.meta.url), {
  instances: 1, // one for each core that the model may use
  data: { file: fileURLToPath(new URL("./model.onnx", import.meta.url)) },
});
const classify = createBatcher(executor, { maxBatchSize: 32, timeoutMs: 5000 });
await classify.ready(); // rejects here if the model does not load

const inputs = Array.from({ length: 500 }, (_, i) => Float32Array.from({ length: 32 }, (_, j) => Math.sin(i + j)));
const alone = await classify(inputs[0]);
const together = await Promise.all(inputs.map((input) => classify(input)));

// Who else was in the batch makes no difference.
assert.equal(together.length, 500);
alone.forEach((score, i) => assert.ok(Math.abs(score - together[0][i]) < 1e-6));
for (const scores of together) assert.ok(Math.abs(scores.reduce((sum, score) => sum + score) - 1) < 1e-5);

const { batches, meanBatchSize } = classify.stats();
console.log(`${together.length + 1} calls, ${batches} runs of the model, ${meanBatchSize.toFixed(1)} items each`);
assert.ok(batches < 100);
await classify.close(); // finishes what runs, unloads the model, ends the thread
