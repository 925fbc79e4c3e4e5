import assert from "node:assert/strict";
import { test } from "node:test";
import { greedy } from "../../dist/index.js";
import { numbers, statuses, timedBatcher, watch, watchAll } from "../support/rig.js";

// A model that costs 50 ms a run and 2 ms an item.
const cost = { fixedMs: 50, perItemMs: 2 };

test("10 items at 50 ms + 2 ms each take 520 ms one by one", async () => {
  const { batcher, clock } = timedBatcher({ ...cost, policy: greedy(), maxBatchSize: 1 });
  const startedAtMs = clock.now();
  const all = watch(Promise.all(numbers(10).map((item) => batcher(item))));
  await clock.advanceAsync(519);
  assert.equal(all.status, "pending");
  await clock.advanceAsync(1);
  assert.equal(all.status, "fulfilled");
  assert.equal(clock.now() - startedAtMs, 520);
});

test("the same 10 items take 70 ms in one batch", async () => {
  const { batcher, clock, batches } = timedBatcher({ ...cost, policy: greedy(), maxBatchSize: 10 });
  const calls = watchAll(batcher, numbers(10));
  await clock.advanceAsync(69);
  assert.ok(statuses(calls).every((status) => status === "pending"));
  await clock.advanceAsync(1);
  assert.ok(statuses(calls).every((status) => status === "fulfilled"));
  assert.deepEqual(batches(), [numbers(10)]);
});
