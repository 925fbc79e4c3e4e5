import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunHandle } from "../../dist/executors.js";
import { assertCode, heldBatcher, timedBatcher, watch, watchAll } from "../support/rig.js";

test("detailed gives a result with the batch that the item rode in, and how long it waited and ran", async () => {
  const { batcher, clock } = timedBatcher({ fixedMs: 10, maxBatchSize: 2 });
  watchAll(batcher, [1, 2]);
  await clock.advanceAsync(4);
  const asked = watch(batcher.detailed(3));
  await clock.advanceAsync(100);
  assert.deepEqual(asked.value, { value: 3, batchId: 2, batchSize: 1, queueMs: 6, runMs: 10 });
});

test("settleDetailed is admitted like settle, and gives each outcome with its own batch", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 2, maxQueueSize: 2 });
  const asked = watch(batcher.settleDetailed([1, 2, 3]));
  const late = watch(batcher.settleDetailed([4]));
  await clock.settle();
  assertCode(late, "QUEUE_FULL");
  await clock.advanceAsync(5);
  const wrong = new Error("wrong item");
  await runs[0]!.finish([1, wrong]);
  await clock.advanceAsync(7);
  await runs[1]!.finish();
  assert.deepEqual(asked.value, [
    { status: "fulfilled", value: { value: 1, batchId: 1, batchSize: 2, queueMs: 0, runMs: 5 } },
    { status: "rejected", reason: wrong },
    { status: "fulfilled", value: { value: 3, batchId: 2, batchSize: 1, queueMs: 5, runMs: 7 } },
  ]);
  assert.deepEqual(await batcher.settleDetailed([]), []);
});

test("detailed rejects as a call does", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxQueueSize: 1 });
  const failed = watch(batcher.detailed(1));
  await clock.settle();
  const [full, impatient] = [watch(batcher.detailed(2, { timeoutMs: 5 })), watch(batcher.detailed(3))];
  await clock.advanceAsync(5);
  assertCode(impatient, "QUEUE_FULL");
  assertCode(full, "TIMEOUT");
  const error = new Error("no model");
  await runs[0]!.fail(error);
  assert.equal(failed.reason, error);
  await batcher.close();
  const closed = watch(batcher.detailed(4));
  await clock.settle();
  assertCode(closed, "CLOSED");
});

test("callers who share an item each get their own wait", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 4, dedupeKey: (item) => item });
  watchAll(batcher, [0]);
  await clock.settle();
  const first = watch(batcher.detailed(1));
  await clock.advanceAsync(3);
  const second = watch(batcher.detailed(1));
  await clock.advanceAsync(4);
  await runs[0]!.finish();
  await clock.advanceAsync(2);
  await runs[1]!.finish();
  assert.deepEqual(first.value, { value: 1, batchId: 2, batchSize: 1, queueMs: 7, runMs: 2 });
  assert.deepEqual(second.value, { value: 1, batchId: 2, batchSize: 1, queueMs: 4, runMs: 2 });
});

test("the run time of an item of a bisected batch lasts to its own result", async () => {
  const { batcher, clock, runs } = heldBatcher({ onBatchError: "bisect", maxBatchSize: 2 });
  const asked = [1, 2].map((item) => watch(batcher.detailed(item)));
  await clock.advanceAsync(10);
  await runs[0]!.fail(new Error("one of them"));
  await clock.advanceAsync(4);
  await runs[1]!.finish();
  await clock.advanceAsync(5);
  await runs[2]!.fail(new Error("this one"));
  assert.deepEqual(asked[0]!.value, { value: 1, batchId: 1, batchSize: 2, queueMs: 0, runMs: 14 });
  assert.equal(asked[1]!.status, "rejected");
});

test("the run time is the one that the executor measured, where it did", async () => {
  const { batcher, clock, runs } = heldBatcher();
  const asked = watch(batcher.detailed(1));
  await clock.advanceAsync(9);
  (runs[0]!.context as RunHandle).measured(3);
  await runs[0]!.finish();
  assert.equal(asked.value?.runMs, 3);
});

test("pending says how many items wait and how many batches are in flight", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 2, concurrency: 2 });
  assert.deepEqual(batcher.pending, { queued: 0, bulk: 0, inFlight: 0 });
  const calls = watchAll(batcher, [1, 2, 3, 4, 5]);
  assert.deepEqual(batcher.pending, { queued: 5, bulk: 0, inFlight: 0 });
  await clock.settle();
  await clock.advanceAsync(0);
  assert.deepEqual(batcher.pending, { queued: 1, bulk: 0, inFlight: 2 });
  for (const index of [0, 1, 2]) {
    await runs[index]!.finish();
    await clock.advanceAsync(0);
  }
  assert.deepEqual(batcher.pending, { queued: 0, bulk: 0, inFlight: 0 });
  assert.ok(calls.every(({ status }) => status === "fulfilled"));
  assert.throws(() => Object.assign(batcher, { pending: 1 }), TypeError, "it is read only");
});
