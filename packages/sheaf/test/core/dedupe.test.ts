import assert from "node:assert/strict";
import { test } from "node:test";
import { assertCode, heldBatcher, holdForEver, statuses, values, watch, watchAll } from "../support/rig.js";

const itself = (item: unknown): unknown => item;

test("equal items that wait share one place and one result", async () => {
  const { batcher, finishAll, batches } = heldBatcher({ dedupeKey: itself });
  const calls = watchAll(batcher, [1, 2, 1, 1, 2]);
  await finishAll();
  assert.deepEqual(batches(), [[1, 2]]);
  assert.deepEqual(values(calls), [1, 2, 1, 1, 2]);
});

test("an item that runs is no longer shared", async () => {
  const { batcher, clock, batches, finishAll } = heldBatcher({ dedupeKey: itself });
  watchAll(batcher, [1]);
  await clock.settle();
  const later = watch(batcher(1));
  await finishAll();
  assert.deepEqual(batches(), [[1], [1]]);
  assert.equal(later.value, 1);
});

test("undefined is not a key, other keys are compared as in a Map", async () => {
  const { batcher, finishAll, batches } = heldBatcher<unknown>({ dedupeKey: itself });
  watchAll(batcher, [undefined, undefined, Number.NaN, Number.NaN, null, null, "1", 1]);
  await finishAll();
  assert.deepEqual(batches(), [[undefined, undefined, Number.NaN, null, "1", 1]]);
});

test("an error reaches every sharer", async () => {
  const { batcher, clock, runs } = heldBatcher({ dedupeKey: itself });
  const calls = watchAll(batcher, [1, 1, 2]);
  await clock.settle();
  const bad = new Error("bad");
  await runs[0]!.finish([bad, 2]);
  assert.deepEqual(statuses(calls), ["rejected", "rejected", "fulfilled"]);
  assert.equal(calls[1]!.reason, bad);
});

test("a sharer takes no further queue room", async () => {
  const { batcher, clock, finishAll } = heldBatcher({ dedupeKey: itself, maxBatchSize: 1, maxQueueSize: 1 });
  watchAll(batcher, [0]);
  await clock.settle();
  const calls = watchAll(batcher, [1, 1, 1, 2]);
  await clock.settle();
  assertCode(calls[3], "QUEUE_FULL");
  assert.equal(batcher.stats().queued, 1);
  await finishAll();
  assert.deepEqual(statuses(calls), ["fulfilled", "fulfilled", "fulfilled", "rejected"]);
});

test("a shared slot is withdrawn only when every sharer has gone", async () => {
  const { batcher, clock, batches, finishAll } = heldBatcher({ dedupeKey: itself, policy: holdForEver() });
  const [first, second, third] = [new AbortController(), new AbortController(), new AbortController()];
  const calls = [
    watch(batcher(1, { signal: first.signal })),
    watch(batcher(1, { signal: second.signal })),
    watch(batcher(2, { signal: third.signal })),
    watch(batcher(2, { signal: third.signal })),
  ];
  await clock.settle();
  first.abort();
  third.abort();
  await clock.settle();
  assert.deepEqual(statuses(calls), ["rejected", "pending", "rejected", "rejected"]);
  assert.equal(batcher.stats().queued, 1);
  void batcher.flush();
  await finishAll();
  assert.deepEqual(batches(), [[1]]);
  assert.equal(calls[1]!.value, 1);
});

test("an item that was withdrawn cannot be joined: the next equal one gets a place of its own", async () => {
  const { batcher, clock, batches, finishAll } = heldBatcher({ dedupeKey: itself, policy: holdForEver() });
  const controller = new AbortController();
  watch(batcher(1, { signal: controller.signal }));
  await clock.settle();
  controller.abort();
  const again = watch(batcher(1));
  await clock.settle();
  void batcher.flush();
  await finishAll();
  assert.deepEqual(batches(), [[1]]);
  assert.equal(again.value, 1);
});

test("every sharer has its own timeout", async () => {
  const { batcher, clock, finishAll } = heldBatcher({ dedupeKey: itself, policy: holdForEver() });
  const hasty = watch(batcher(1, { timeoutMs: 10 }));
  const patient = watch(batcher(1));
  await clock.advanceAsync(10);
  assertCode(hasty, "TIMEOUT");
  assert.equal(patient.status, "pending");
  void batcher.flush();
  await finishAll();
  assert.equal(patient.value, 1);
});

test("the highest priority of the sharers counts", async () => {
  const { batcher, clock, batches } = heldBatcher({ dedupeKey: itself, policy: holdForEver() });
  watch(batcher(1, { priority: "bulk" }));
  await clock.settle();
  assert.deepEqual(batches(), []);
  watch(batcher(1, { priority: "immediate" }));
  await clock.settle();
  assert.deepEqual(batches(), [[1]]);
});

test("a bulk item joined by an interactive one goes with the interactive items", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({ dedupeKey: itself, maxBatchSize: 1 });
  watchAll(batcher, [0]);
  await clock.settle();
  watch(batcher(1, { priority: "bulk" }));
  watch(batcher(2, { priority: "bulk" }));
  watch(batcher(2));
  await runs[0]!.finish();
  assert.deepEqual(batches(), [[0], [2]]);
});

test("dedupeKey is called once a call, on arrival; a throw fails that call only", async () => {
  const asked: number[] = [];
  const boom = new Error("no key");
  const { batcher, finishAll } = heldBatcher({
    dedupeKey: (item) => {
      asked.push(item);
      if (item === 2) throw boom;
      return item;
    },
  });
  const calls = watchAll(batcher, [1, 2, 3]);
  assert.deepEqual(asked, [1, 2, 3]);
  await finishAll();
  assert.deepEqual(statuses(calls), ["fulfilled", "rejected", "fulfilled"]);
  assert.equal(calls[1]!.reason, boom);
  assert.equal(asked.length, 3);
});

test("the items of a list share with each other and with others", async () => {
  const { batcher, finishAll, batches } = heldBatcher({ dedupeKey: itself });
  const single = watch(batcher(1));
  const list = watch(batcher.many([1, 2, 2, 1]));
  await finishAll();
  assert.deepEqual(batches(), [[1, 2]]);
  assert.deepEqual(list.value, [1, 2, 2, 1]);
  assert.equal(single.value, 1);
});

test("every sharer counts in the statistics", async () => {
  const { batcher, finishAll } = heldBatcher({ dedupeKey: itself });
  watchAll(batcher, [1, 1, 1]);
  await finishAll();
  assert.equal(batcher.stats().items.ok, 3);
});

test("an item that already runs for a caller who went away is still not shared", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({ dedupeKey: itself, concurrency: 2 });
  const controller = new AbortController();
  watch(batcher(1, { signal: controller.signal }));
  await clock.settle();
  controller.abort();
  const next = watch(batcher(1));
  await clock.settle();
  assert.deepEqual(batches(), [[1], [1]]);
  await runs[1]!.finish();
  assert.equal(next.value, 1);
});

test("a sharer whose signal is aborting goes too when the place of the first caller falls to it", async () => {
  const { batcher, clock } = heldBatcher({ dedupeKey: itself, policy: holdForEver() });
  const [first, second] = [new AbortController(), new AbortController()];
  second.signal.addEventListener("abort", () => first.abort());
  const calls = [watch(batcher(1, { signal: first.signal })), watch(batcher(1, { signal: second.signal }))];
  await clock.settle();
  second.abort();
  await clock.settle();
  assert.deepEqual(statuses(calls), ["rejected", "rejected"]);
  assert.equal(batcher.stats().queued, 0);
  assert.equal(batcher.stats().items.aborted, 2);
});

test("an item whose first caller has gone is not held again, nor is what came after it", async () => {
  const { batcher, clock, batches, finishAll } = heldBatcher({
    dedupeKey: itself,
    policy: holdForEver(),
    maxWaitMs: 20,
  });
  watch(batcher(1, { timeoutMs: 15 }));
  await clock.advanceAsync(5);
  watchAll(batcher, [2]);
  await clock.advanceAsync(9);
  watchAll(batcher, [1]);
  await clock.advanceAsync(5);
  assert.deepEqual(batches(), []);
  await clock.advanceAsync(1);
  assert.deepEqual(batches(), [[1, 2]]);
  await finishAll();
});
