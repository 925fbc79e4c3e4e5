// A model writes several texts at once, a word at a time. Who asked for a short one need not wait for the longest.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { createBatcher } from "sheaf";

const write = createBatcher(async (lengths, { answer }) => {
  const texts = lengths.map(() => []);
  for (let step = 1; step <= Math.max(...lengths); step++) {
    await sleep(5); // one step of the model, for all texts
    lengths.forEach((length, index) => {
      if (step <= length) texts[index].push(`word${step}`);
      if (step === length) answer(index, texts[index].join(" "));
    });
  }
});

const order = [];
await Promise.all(
  [12, 2, 5].map(async (length) => {
    const text = await write(length);
    assert.equal(text.split(" ").length, length);
    order.push(length);
    console.log(`${length} words: ${text}`);
  }),
);
assert.deepEqual(order, [2, 5, 12]);
assert.equal(write.stats().batches, 1);
