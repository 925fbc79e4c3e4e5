import assert from "node:assert/strict";
import { test } from "node:test";
import { fixedWindow } from "../../dist/index.js";
import { heldBatcher, holdForEver, numbers, statuses, timedBatcher, values, watch, watchAll } from "../support/rig.js";

const alone = { alone: true } as const;

test("an item that runs alone shares its batch with no other; those behind it pass it, once", async () => {
  const { batcher, batches, finishAll } = heldBatcher({ maxBatchSize: 4 });
  watchAll(batcher, [1, 2]);
  watch(batcher(3, alone));
  watchAll(batcher, [4, 5, 6]);
  watch(batcher(7, alone));
  watchAll(batcher, [8]);
  await finishAll();
  assert.deepEqual(batches(), [[1, 2, 4, 5], [3], [6, 8], [7]]);
});

test("in a list each item is alone", async () => {
  const { batcher, batches, finishAll } = heldBatcher();
  const lists = [
    watch(batcher.many([1, 2], alone)),
    watch(batcher.settle([3, 4], alone)),
    watch(batcher.settleDetailed([5], alone)),
  ];
  watchAll(batcher, [6, 7]);
  await finishAll();
  assert.deepEqual(batches(), [[1], [2], [3], [4], [5], [6, 7]]);
  assert.deepEqual(statuses(lists), ["fulfilled", "fulfilled", "fulfilled"]);
});

test("it is not held, also behind others that are; they are held as ever", async () => {
  const { batcher, clock, batches, runs } = heldBatcher({ policy: fixedWindow(), maxWaitMs: 50, maxBatchSize: 4 });
  watchAll(batcher, [1]);
  await clock.advanceAsync(10);
  assert.deepEqual(batches(), []);
  watch(batcher(2, alone));
  watchAll(batcher, [3]);
  await clock.advanceAsync(0);
  assert.deepEqual(batches(), [[2]]);
  await runs[0]!.finish();
  await clock.advanceAsync(39);
  assert.deepEqual(batches(), [[2]]);
  await clock.advanceAsync(1);
  assert.deepEqual(batches(), [[2], [1, 3]]);
});

test("the reason of its batch is that nothing more fits", async () => {
  const { batcher, clock } = timedBatcher({ policy: holdForEver() });
  const reasons: string[] = [];
  batcher.subscribe(({ reason }) => reasons.push(reason));
  const call = watch(batcher(1, alone));
  await clock.advanceAsync(10);
  assert.equal(call.value, 1);
  assert.deepEqual(reasons, ["full"]);
});

test("equal items neither join it nor are joined by it", async () => {
  const asked: number[] = [];
  const dedupeKey = (item: number): number => (asked.push(item), item % 10);
  const { batcher, batches, finishAll } = heldBatcher({ dedupeKey, maxBatchSize: 4 });
  const calls = [watch(batcher(1)), watch(batcher(11, alone)), watch(batcher(21)), watch(batcher(31))];
  await finishAll();
  assert.deepEqual(batches(), [[1], [11]]);
  assert.deepEqual(values(calls), [1, 11, 1, 1]);
  assert.deepEqual(asked, [1, 21, 31], "it has no dedupeKey");
});

test("it takes a slot like any other batch, and is not prefetched", async () => {
  const { batcher, clock, batches, runs } = heldBatcher({ concurrency: 2, maxBatchSize: 2 });
  watchAll(batcher, [1, 2, 3, 4]);
  watchAll(batcher, [5, 6], alone);
  await clock.advanceAsync(0);
  assert.deepEqual(batches(), [
    [1, 2],
    [3, 4],
  ]);
  await runs[0]!.finish();
  await clock.advanceAsync(0);
  assert.deepEqual(batches().slice(2), [[5]]);
});

test("it keeps its lane: an immediate one is next, and a bulk one comes after what is above it and goes", async () => {
  const { batcher, clock, batches, runs, finishAll } = heldBatcher({
    policy: fixedWindow(),
    maxWaitMs: 50,
    maxBatchSize: 4,
  });
  watch(batcher(1, { priority: "bulk", alone: true }));
  watchAll(batcher, [2, 3]);
  watch(batcher(4, { priority: "immediate", alone: true }));
  await clock.advanceAsync(0);
  assert.deepEqual(batches(), [[4]]);
  await runs[0]!.finish();
  await clock.advanceAsync(0);
  assert.deepEqual(batches(), [[4], [1]], "2 and 3 are held");
  watchAll(batcher, [5, 6]);
  watch(batcher(7, { priority: "bulk", alone: true }));
  await finishAll();
  assert.deepEqual(batches(), [[4], [1], [2, 3, 5, 6], [7]]);
});

test("it keeps its orderKey", async () => {
  const { batcher, batches, clock, runs, finishAll } = heldBatcher<string>({
    orderKey: (item) => item[0],
    concurrency: 2,
    maxBatchSize: 4,
  });
  watchAll(batcher, ["a1"]);
  await clock.advanceAsync(0);
  watch(batcher("a2", alone));
  watchAll(batcher, ["a3", "b1"]);
  await clock.advanceAsync(0);
  assert.deepEqual(batches(), [["a1"], ["b1"]], "a2 waits for a1, and cuts nothing short meanwhile");
  await runs[0]!.finish();
  await finishAll();
  assert.deepEqual(batches(), [["a1"], ["b1"], ["a2"], ["a3"]]);
});

test("it stays alone when its batch is weighed, and when it is withdrawn others share again", async () => {
  const { batcher, clock, batches, finishAll } = heldBatcher({ weigh: (item) => item, maxBatchWeight: 10 });
  watchAll(batcher, [1]);
  await clock.advanceAsync(0);
  const controller = new AbortController();
  watchAll(batcher, [2]);
  const gone = watch(batcher(3, { alone: true, signal: controller.signal }));
  watchAll(batcher, [4]);
  watch(batcher(5, alone));
  controller.abort();
  await finishAll();
  assert.equal(gone.status, "rejected");
  assert.deepEqual(batches(), [[1], [2, 4], [5]]);
});

test("alone must be a boolean", async () => {
  const { batcher } = heldBatcher();
  await assert.rejects(batcher(1, { alone: 1 as unknown as boolean }), {
    name: "TypeError",
    message: "alone must be true or false, got 1",
  });
});

test("thousands that are alone cost the others nothing but their turns", async () => {
  const { batcher, batches, finishAll } = heldBatcher({ maxBatchSize: 2 });
  watchAll(batcher, [1]);
  watchAll(batcher, numbers(3000, 10), alone);
  watchAll(batcher, [2, 3]);
  await finishAll();
  assert.equal(batches().length, 3002);
  assert.ok(batches().every((batch) => batch.length === 1 || batch.join() === "2,3"));
});
