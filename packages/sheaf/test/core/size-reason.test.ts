import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher, greedy, type BatcherOptions, type Policy } from "../../dist/index.js";

/** Calls at once, and the size of each batch with why it held no more. */
async function sizesOf(
  items: readonly number[],
  options: BatcherOptions<number, number>,
  call: { readonly alone?: boolean } = {},
): Promise<string[]> {
  const batcher = createBatcher<number, number>((batch) => batch, { concurrency: 1, policy: greedy(), ...options });
  const seen: string[] = [];
  batcher.subscribe(({ size, sizeReason }) => seen.push(`${size} ${sizeReason}`));
  await Promise.all(items.map((item) => batcher(item, call)));
  await batcher.close();
  return seen;
}

const three: Policy = { name: "three", decide: () => ({ run: 3 }) };
const seven = [1, 2, 3, 4, 5, 6, 7];

test("every batch says why it held no more items", async () => {
  assert.deepEqual(await sizesOf(seven, { maxBatchSize: 4 }), ["4 full", "3 all"]);
  assert.deepEqual(await sizesOf(seven, { maxBatchSize: 5, policy: three }), ["3 cost", "3 cost", "1 all"]);
  assert.deepEqual(await sizesOf([1, 1, 2], { groupKey: (item) => item }), ["2 group", "1 all"]);
  assert.deepEqual(await sizesOf([5, 5, 5], { weigh: (item) => item, maxBatchWeight: 10 }), ["2 weight", "1 all"]);
  assert.deepEqual(await sizesOf([1, 1, 2], { orderKey: (item) => item }), ["3 all"]);
  assert.deepEqual(await sizesOf([1, 2], {}, { alone: true }), ["1 alone", "1 alone"]);
  const limited = await sizesOf([1, 2, 3], { rateLimit: { items: 2, perMs: 20 }, maxBatchSize: 8 });
  assert.equal(limited[0], "2 limit");
});
