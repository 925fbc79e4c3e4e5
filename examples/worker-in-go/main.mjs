// Calls one at a time; a program in Go runs them in batches.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { createBatcher } from "sheaf";
import { checkWorker, workerCommand } from "sheaf/node";

const command = fileURLToPath(new URL("dist/worker", import.meta.url));
const executor = workerCommand({ command, instances: 2 });
const countWords = createBatcher(executor, { maxBatchSize: 32 });
await countWords.ready();

const texts = Array.from({ length: 1000 }, (_, i) => "word ".repeat((i % 7) + 1));
const counts = await Promise.all(texts.map((text) => countWords(text)));
assert.deepEqual(
  counts,
  texts.map((_, i) => (i % 7) + 1),
);
const { batches } = countWords.stats();
console.log(`${counts.length} texts counted in ${batches} batches`);

// One that fails is one caller's failure.
const [good, bad] = await Promise.allSettled([countWords("two words"), countWords("   ")]);
assert.deepEqual([good.value, bad.reason.code], [2, "INVALID_INPUT"]);
console.log(good.value, bad.reason.message);
await countWords.close();

// What `sheaf check-worker dist/worker` prints: every promise of the protocol.
let kept = 0;
for await (const { name, ok, detail } of checkWorker({ command })) {
  assert.ok(ok, `${name}: ${detail}`);
  kept++;
}
console.log(`${kept} promises of the worker protocol kept`);
