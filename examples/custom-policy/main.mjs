// A policy of your own: an engine that is compiled for batches of 1, 2, 4, 8, 16 and 32 items pads every other size up to
// the next of them, so send only those. The policy is a pure function of what waits: no clock, no timer, no promise.
import assert from "node:assert/strict";
import { auto, createBatcher, greedy } from "sheaf";
import { simulate } from "sheaf/tuning";

/** @returns {import("sheaf").Policy} */
function powersOfTwo() {
  const decide = ({ waiting, maxBatchSize }) => ({ run: 2 ** Math.floor(Math.log2(Math.min(waiting, maxBatchSize))) });
  return { name: "powers-of-two", decide };
}

// Live: 13 calls at once go as 8, 4 and 1.
const sizes = [];
const square = createBatcher((numbers) => numbers.map((n) => n * n), { policy: powersOfTwo(), concurrency: 1 });
square.subscribe(({ size }) => sizes.push(size));
await Promise.all(Array.from({ length: 13 }, (_, n) => square(n)));
console.log(`13 calls went as batches of ${sizes.join(", ")}`);
assert.deepEqual(sizes, [8, 4, 1]);

// What it gains, before it is deployed: the real batcher on a virtual clock, a minute of traffic in a second.
const padded = (size) => 2 ** Math.ceil(Math.log2(size));
const traffic = {
  arrivals: { pattern: "poisson", ratePerS: 700 },
  cost: (size) => 2 + padded(size),
  concurrency: 1,
  maxQueueSize: 100_000,
  items: 20_000,
};
const meanMs = {};
for (const policy of [greedy(), auto(), powersOfTwo()]) {
  const { latencyMs, meanBatchSize, batchSizes } = await simulate({ ...traffic, policy });
  let computed = 0;
  let asked = 0;
  for (const [size, batches] of batchSizes) {
    computed += padded(size) * batches;
    asked += size * batches;
  }
  meanMs[policy.name] = latencyMs.mean;
  const wasted = `${((100 * (computed - asked)) / computed).toFixed(0)} % of the work is padding`;
  console.log(
    `${policy.name.padEnd(14)} mean ${latencyMs.mean.toFixed(1)} ms, batches of ${meanBatchSize.toFixed(1)}, ${wasted}`,
  );
}
// auto() learns such steps from the runs; a policy that knows them has nothing to learn.
assert.ok(meanMs["powers-of-two"] < meanMs.greedy);
