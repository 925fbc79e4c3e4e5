import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher } from "../../dist/index.js";
import { assertCode, heldBatcher, holdForEver, numbers, statuses, values, watch, watchAll } from "../support/rig.js";

test("one item more than maxQueueSize is QUEUE_FULL at once, and nothing is enqueued", async () => {
  const { batcher, clock, batches, finishAll } = heldBatcher({ policy: holdForEver(), maxQueueSize: 3 });
  const calls = watchAll(batcher, [1, 2, 3, 4]);
  await clock.settle();
  assertCode(calls[3], "QUEUE_FULL");
  assert.deepEqual(statuses(calls.slice(0, 3)), Array(3).fill("pending"));
  void batcher.flush();
  await finishAll();
  assert.deepEqual(batches(), [[1, 2, 3]]);
});

test("QUEUE_FULL is decided in the turn of the call", async () => {
  const { batcher } = heldBatcher({ policy: holdForEver(), maxQueueSize: 1 });
  watchAll(batcher, [1]);
  const refused = watch(batcher(2));
  assert.equal(batcher.stats().items.rejected, 1);
  for (let turn = 0; turn < 5; turn++) await Promise.resolve();
  assert.equal(refused.status, "rejected");
});

test("the message of QUEUE_FULL has the numbers and what to do", async () => {
  const { batcher, clock } = heldBatcher({ policy: holdForEver(), maxQueueSize: 1 });
  const [, refused] = watchAll(batcher, [1, 2]);
  await clock.settle();
  const { message } = assertCode(refused, "QUEUE_FULL");
  assert.match(message, /\b1\b/);
  assert.match(message, /maxQueueSize/);
  assert.match(message, /many\(\)/);
  assert.match(message, /map\(\)/);
  assert.match(message, /onQueueFull: "wait"/);
});

test("running items take no queue room", async () => {
  const { batcher, clock } = heldBatcher({ maxBatchSize: 4, maxQueueSize: 4 });
  watchAll(batcher, [1, 2, 3, 4]);
  await clock.settle();
  const calls = watchAll(batcher, [5, 6, 7, 8]);
  await clock.settle();
  assert.deepEqual(statuses(calls), Array(4).fill("pending"));
  assert.equal(batcher.stats().queued, 4);
});

test("10,000 items may wait by default", async () => {
  const { batcher, clock } = heldBatcher({ policy: holdForEver() });
  const calls = watchAll(batcher, numbers(10_001));
  await clock.settle();
  assert.equal(calls[9_999]!.status, "pending");
  assertCode(calls[10_000], "QUEUE_FULL");
});

test("maxQueueSize may be Infinity", async () => {
  const { batcher, clock } = heldBatcher({ policy: holdForEver(), maxQueueSize: Infinity });
  const calls = watchAll(batcher, numbers(30_000));
  await clock.settle();
  assert.equal(calls.at(-1)!.status, "pending");
});

const waiting = { maxBatchSize: 1, maxQueueSize: 2, onQueueFull: "wait" } as const;

test('"wait": the calls wait for room and come in in arrival order', async () => {
  const { batcher, clock, batches, finishAll } = heldBatcher(waiting);
  watchAll(batcher, [0]);
  await clock.settle();
  const calls = watchAll(batcher, [1, 2, 3, 4]);
  await clock.settle();
  assert.deepEqual(statuses(calls), Array(4).fill("pending"));
  assert.equal(batcher.stats().queued <= 4, true);
  await finishAll();
  assert.deepEqual(values(calls), [1, 2, 3, 4]);
  assert.deepEqual(batches().flat(), [0, 1, 2, 3, 4]);
});

test('"wait": at most maxQueueSize calls wait for room, the next is QUEUE_FULL', async () => {
  const { batcher, clock } = heldBatcher(waiting);
  watchAll(batcher, [0]);
  await clock.settle();
  const calls = watchAll(batcher, [1, 2, 3, 4, 5]);
  await clock.settle();
  assert.deepEqual(statuses(calls), ["pending", "pending", "pending", "pending", "rejected"]);
  assertCode(calls[4], "QUEUE_FULL");
});

test('"wait": a caller that waits for room is under its timeout', async () => {
  const { batcher, clock, batches, finishAll } = heldBatcher(waiting);
  watchAll(batcher, [0]);
  await clock.settle();
  watchAll(batcher, [1, 2]);
  const hasty = watch(batcher(3, { timeoutMs: 30 }));
  const patient = watch(batcher(4));
  await clock.advanceAsync(30);
  assertCode(hasty, "TIMEOUT");
  await finishAll();
  assert.equal(patient.value, 4);
  assert.deepEqual(batches().flat(), [0, 1, 2, 4]);
});

test('"wait": a timeout counts from the call, not from when there was room', async () => {
  const { batcher, clock, runs } = heldBatcher(waiting);
  watchAll(batcher, [0]);
  await clock.settle();
  watchAll(batcher, [1, 2]);
  const call = watch(batcher(3, { timeoutMs: 30 }));
  await clock.advanceAsync(20);
  await runs[0]!.finish();
  await clock.advanceAsync(9);
  assert.equal(call.status, "pending");
  await clock.advanceAsync(1);
  assertCode(call, "TIMEOUT");
});

test('"wait": a caller that waits for room is under its signal', async () => {
  const { batcher, clock, batches, finishAll } = heldBatcher(waiting);
  watchAll(batcher, [0]);
  await clock.settle();
  watchAll(batcher, [1, 2]);
  const controller = new AbortController();
  const gone = watch(batcher(3, { signal: controller.signal }));
  const stays = watch(batcher(4));
  await clock.settle();
  controller.abort("bye");
  await clock.settle();
  assert.equal(gone.reason, "bye");
  const room = watch(batcher(5));
  await finishAll();
  assert.deepEqual([stays.value, room.value], [4, 5]);
  assert.deepEqual(batches().flat(), [0, 1, 2, 4, 5]);
});

test('"wait": a withdrawn item makes room for the first that waits', async () => {
  const { batcher, clock } = heldBatcher({ ...waiting, maxQueueSize: 1, policy: holdForEver() });
  const controller = new AbortController();
  watchAll(batcher, [1], { signal: controller.signal });
  const next = watch(batcher(2));
  await clock.settle();
  controller.abort();
  await clock.settle();
  assert.equal(next.status, "pending");
  assert.equal(batcher.stats().queued >= 1, true);
});

test('"wait": an immediate item does not overtake those that wait for room without a bound on them', async () => {
  const { batcher, clock, finishAll } = heldBatcher(waiting);
  watchAll(batcher, [0]);
  await clock.settle();
  const calls = watchAll(batcher, [1, 2, 3]);
  const urgent = watch(batcher(9, { priority: "immediate" }));
  await finishAll();
  assert.equal(urgent.value, 9);
  assert.deepEqual(values(calls), [1, 2, 3]);
});

test('"auto" needs timeoutMs: without it a RangeError says so', () => {
  assert.throws(() => createBatcher((items: number[]) => items, { maxQueueSize: "auto" }), {
    name: "RangeError",
    message: /timeoutMs/,
  });
});

test('"auto": the queue holds about capacity × timeout once the batcher knows its run time', async () => {
  const { batcher, clock, runs } = heldBatcher({
    maxQueueSize: "auto",
    timeoutMs: 1_000,
    maxBatchSize: 10,
    concurrency: 1,
  });
  for (let batch = 0; batch < 30; batch++) {
    watchAll(batcher, numbers(10));
    await clock.advanceAsync(100);
    await runs[batch]!.finish();
  }
  // 10 items every 100 ms for 900 ms of waiting: about 81 with the factor 0.9, never thousands, never none.
  watchAll(batcher, numbers(10));
  await clock.settle();
  const calls = watchAll(batcher, numbers(1_000));
  await clock.settle();
  const taken = calls.filter(({ status }) => status === "pending").length;
  assert.ok(taken >= 40 && taken <= 110, `${taken} were taken`);
});
