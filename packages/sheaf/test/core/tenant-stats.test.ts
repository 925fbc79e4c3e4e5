import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher } from "../../dist/index.js";
import { heldBatcher, numbers, watchAll } from "../support/rig.js";

test("without fairKey there are no figures by tenant", () => {
  assert.equal(heldBatcher().batcher.stats().tenants, null);
});

test("each tenant's waiting, dispatched and refused items are counted, those with most items first", async () => {
  const { batcher, clock, runs, finishAll } = heldBatcher<string>({
    fairKey: (item) => item[0],
    shareOf: (key) => (key === "a" ? 2 : 1),
    maxBatchSize: 4,
    maxQueueSize: 9,
  });
  watchAll(batcher, ["-"]);
  await clock.settle();
  watchAll(batcher, [...numbers(10).map((number) => `a${number}`), "b1"]);
  assert.deepEqual(batcher.stats().tenants, {
    busiest: [
      // Six times the room that is free is the most for one.
      { key: "a", share: 2, queued: 8, dispatched: 0, rejected: 2 },
      { key: "-", share: 1, queued: 0, dispatched: 1, rejected: 0 },
      { key: "b", share: 1, queued: 1, dispatched: 0, rejected: 0 },
    ],
    others: { queued: 0, dispatched: 0, rejected: 0 },
  });
  await runs[0]!.finish();
  const [first] = batcher.stats().tenants!.busiest;
  assert.deepEqual([first!.queued, first!.dispatched], [5, 3]);
  await finishAll();
});

test("twenty tenants have figures of their own, and one sum has the others, the forgotten ones too", async () => {
  const batcher = createBatcher((items: number[]) => items, { fairKey: (item) => (item < 50_000 ? item : "busy") });
  for (let first = 0; first < 10_000; first += 1000)
    await Promise.all(numbers(1000, first).map((item) => batcher(item)));
  await Promise.all(numbers(10, 50_000).map((item) => batcher(item)));
  const { busiest, others } = batcher.stats().tenants!;
  assert.equal(busiest.length, 20);
  assert.deepEqual(busiest[0], { key: "busy", share: 1, queued: 0, dispatched: 10, rejected: 0 });
  const shown = busiest.reduce((sum, { dispatched }) => sum + dispatched, 0);
  assert.deepEqual(others, { queued: 0, dispatched: 10_010 - shown, rejected: 0 });
  await batcher.close();
});
