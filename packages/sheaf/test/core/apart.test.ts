import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher, type BatcherOptions } from "../../dist/index.js";
import { virtualClock } from "../../dist/testing/index.js";
import { seededRandom } from "../../dist/internal/tuning.js";

/** A batcher that has learned that a run takes 10 ms and 0.1 ms for each unit of weight, and the weights of its batches. */
async function learned(options: BatcherOptions<number, number>) {
  const clock = virtualClock();
  const batches: number[][] = [];
  const call = createBatcher<number, number>(
    async (weights) => {
      batches.push([...weights]);
      await clock.sleep(10 + 0.1 * weights.reduce((sum, weight) => sum + weight, 0));
      return weights;
    },
    { clock, concurrency: 1, maxBatchSize: 16, weigh: (weight) => weight, ...options },
  );
  const random = seededRandom(3);
  for (let round = 0; round < 60; round++) {
    const items = Array.from({ length: 1 + Math.floor(6 * random()) }, () => Math.ceil(20 + 300 * random()));
    await Promise.all(items.map((item) => call(item)));
  }
  batches.length = 0;
  return { call, clock, batches };
}

const waiting = [500, 5, 400, 6, 7];

test("a batch function that runs items apart gets all that wait, in order of arrival", async () => {
  const { call, batches } = await learned({ batchWeight: "apart" });
  const costs = call.stats().costModel!;
  assert.ok(Math.abs(costs.perWeightMs! - 0.1) < 0.01, `it has learned ${costs.perWeightMs}`);
  const first = call(100);
  await Promise.resolve();
  await Promise.all([first, ...waiting.map((item) => call(item))]);
  assert.deepEqual(batches.at(-1)!.slice(-waiting.length), waiting);
  await call.close();
});

test("another one gets light items before heavy ones", async () => {
  const { call, batches } = await learned({ batchWeight: "sum" });
  await Promise.all([call(100), ...waiting.map((item) => call(item))]);
  assert.ok(batches.length > 1, "in more than one run");
  assert.equal(batches.at(-1)!.at(-1), 500);
  await call.close();
});

test("its weights count as a sum, whatever the runs look like, and its limit too", async () => {
  const { call, batches } = await learned({ batchWeight: "apart", maxBatchWeight: 600 });
  // Batches of equal items would fit a padded cost as well.
  for (let round = 0; round < 40; round++) await Promise.all([50, 50, 50].map((item) => call(item)));
  assert.equal(call.stats().costModel!.batchWeight, "sum");
  batches.length = 0;
  await Promise.all([300, 200, 150, 100].map((item) => call(item)));
  assert.deepEqual(batches, [
    [300, 200],
    [150, 100],
  ]);
  await call.close();
});

test("refuseLate counts everything that came before an item, light or heavy", async () => {
  const { call } = await learned({ batchWeight: "apart", refuseLate: 1 });
  const running = call(100);
  await Promise.resolve();
  const before = [1000, 1000, 1000].map((item) => call(item));
  // 20 ms and 310 ms go before it.
  await assert.rejects(call(5, { timeoutMs: 200 }), { code: "QUEUE_FULL" });
  const patient = call(5, { timeoutMs: 1000 });
  await Promise.all([running, ...before, patient]);
  await call.close();
});
