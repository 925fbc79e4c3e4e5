import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { heldBatcher, holdForEver, numbers, statuses, values, watch, watchAll } from "../support/rig.js";

test("a call with an aborted signal rejects with its reason and is never run", async () => {
  const { batcher, clock, runs } = heldBatcher();
  const reason = new Error("already gone");
  const call = watch(batcher(1, { signal: AbortSignal.abort(reason) }));
  await clock.settle();
  assert.equal(call.reason, reason);
  assert.equal(runs.length, 0);
});

test("an aborted waiting item rejects with signal.reason and is never run", async () => {
  const { batcher, clock, batches, finishAll } = heldBatcher({ policy: holdForEver() });
  const controller = new AbortController();
  const calls = [watch(batcher(1, { signal: controller.signal })), watch(batcher(2))];
  await clock.settle();
  const reason = { any: "thing" };
  controller.abort(reason);
  await clock.settle();
  assert.equal(calls[0]!.reason, reason);
  assert.equal(batcher.stats().queued, 1);
  void batcher.flush();
  await finishAll();
  assert.deepEqual(batches(), [[2]]);
});

test("without a reason of its own an abort rejects with the AbortError of the platform", async () => {
  const { batcher, clock } = heldBatcher({ policy: holdForEver() });
  const controller = new AbortController();
  const call = watch(batcher(1, { signal: controller.signal }));
  controller.abort();
  await clock.settle();
  assert.equal((call.reason as Error).name, "AbortError");
});

test("aborting a running item drops its own result only", async () => {
  const { batcher, clock, runs } = heldBatcher();
  const controller = new AbortController();
  const calls = [watch(batcher(1)), watch(batcher(2, { signal: controller.signal })), watch(batcher(3))];
  await clock.settle();
  controller.abort();
  await clock.settle();
  assert.deepEqual(statuses(calls), ["pending", "rejected", "pending"]);
  await runs[0]!.finish([10, 20, 30]);
  assert.deepEqual(values(calls), [10, undefined, 30]);
});

test("the batch's signal aborts only when every caller of the batch has gone", async () => {
  const { batcher, clock, runs } = heldBatcher();
  const controllers = numbers(3).map(() => new AbortController());
  controllers.forEach(({ signal }, item) => watch(batcher(item, { signal })));
  await clock.settle();
  const { signal } = runs[0]!.context;
  controllers[0]!.abort();
  controllers[2]!.abort();
  await clock.settle();
  assert.equal(signal.aborted, false);
  controllers[1]!.abort();
  await clock.settle();
  assert.equal(signal.aborted, true);
});

test("a batch with one caller that cannot go never aborts", async () => {
  const { batcher, clock, runs } = heldBatcher();
  const controller = new AbortController();
  watchAll(batcher, [1, 2], { signal: controller.signal });
  watchAll(batcher, [3]);
  await clock.settle();
  controller.abort();
  await clock.settle();
  assert.equal(runs[0]!.context.signal.aborted, false);
});

test("a batch function that obeys the signal frees its slot at once", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({ maxBatchSize: 1 });
  const controller = new AbortController();
  watchAll(batcher, [1], { signal: controller.signal });
  await clock.settle();
  runs[0]!.context.signal.addEventListener("abort", () => void runs[0]!.fail(new Error("stopped")));
  watchAll(batcher, [2]);
  controller.abort();
  await clock.settle();
  assert.deepEqual(batches(), [[1], [2]]);
});

test("one signal may serve many calls: all of them go at once", async () => {
  const { batcher, clock, batches, finishAll } = heldBatcher({ policy: holdForEver(), maxBatchSize: 8 });
  const controller = new AbortController();
  const gone = watchAll(batcher, numbers(100), { signal: controller.signal });
  const stays = watch(batcher(1_000));
  await clock.settle();
  controller.abort();
  await clock.settle();
  assert.ok(gone.every(({ status }) => status === "rejected"));
  assert.equal(stays.status, "pending");
  assert.equal(batcher.stats().queued, 1);
  void batcher.flush();
  await finishAll();
  assert.deepEqual(batches(), [[1_000]]);
});

test("no listener stays on a signal after its calls have settled", async () => {
  const { batcher, finishAll } = heldBatcher({ maxBatchSize: 8 });
  const { signal } = new AbortController();
  for (let round = 0; round < 20; round++) {
    watchAll(batcher, numbers(20), { signal });
    watch(batcher.many(numbers(20), { signal }));
    await finishAll();
  }
  assert.equal(getEventListeners(signal, "abort").length, 0);
});

test("a signal has one listener however many calls use it, so that no runtime warns of a leak", async () => {
  const { batcher, clock } = heldBatcher({
    policy: holdForEver(),
    maxBatchSize: 100,
    maxQueueSize: 3_000,
    onQueueFull: "wait",
  });
  const { signal } = new AbortController();
  watchAll(batcher, numbers(3_000), { signal });
  watchAll(batcher, numbers(500), { signal });
  watch(batcher.many(numbers(1_000), { signal }));
  await clock.settle();
  assert.equal(getEventListeners(signal, "abort").length, 1);
});

test("calls that have settled leave those that still wait their listener", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 1 });
  const controller = new AbortController();
  const calls = watchAll(batcher, [1, 2, 3], { signal: controller.signal });
  await clock.settle();
  await runs[0]!.finish();
  controller.abort();
  await clock.settle();
  assert.deepEqual(statuses(calls), ["fulfilled", "rejected", "rejected"]);
});

test("aborting after the result changes nothing", async () => {
  const { batcher, finishAll } = heldBatcher();
  const controller = new AbortController();
  const call = watch(batcher(1, { signal: controller.signal }));
  await finishAll();
  controller.abort();
  await finishAll();
  assert.equal(call.value, 1);
  assert.equal(batcher.stats().items.aborted, 0);
});

test("aborted items free their queue room", async () => {
  const { batcher, clock } = heldBatcher({ policy: holdForEver(), maxQueueSize: 2 });
  const controller = new AbortController();
  watchAll(batcher, [1, 2], { signal: controller.signal });
  await clock.settle();
  controller.abort();
  const calls = watchAll(batcher, [3, 4]);
  await clock.settle();
  assert.deepEqual(statuses(calls), ["pending", "pending"]);
});

test("withdrawn items do not count towards a full batch", async () => {
  const { batcher, clock, batches } = heldBatcher({
    maxBatchSize: 3,
    policy: {
      name: "full",
      decide: ({ waiting, maxBatchSize }) => (waiting >= maxBatchSize ? { run: waiting } : "wait"),
    },
  });
  const controller = new AbortController();
  watchAll(batcher, [1, 2], { signal: controller.signal });
  await clock.settle();
  controller.abort();
  await clock.settle();
  watchAll(batcher, [3, 4]);
  await clock.settle();
  assert.deepEqual(batches(), []);
  watchAll(batcher, [5]);
  await clock.settle();
  assert.deepEqual(batches(), [[3, 4, 5]]);
});

test("20,000 waiting items can be aborted one by one, the newest first, in bounded time", async () => {
  const { batcher, clock } = heldBatcher({ policy: holdForEver(), maxQueueSize: 20_000 });
  const controllers = numbers(20_000).map(() => new AbortController());
  const calls = controllers.map(({ signal }, item) => watch(batcher(item, { signal })));
  await clock.settle();
  for (let item = controllers.length - 1; item >= 0; item--) controllers[item]!.abort();
  await clock.settle();
  assert.ok(calls.every(({ status }) => status === "rejected"));
  assert.equal(batcher.stats().queued, 0);
  assert.equal(batcher.stats().items.aborted, 20_000);
});

test("a caller that aborts from inside the batch function gets its reason", async () => {
  const controller = new AbortController();
  const { batcher, clock, runs } = heldBatcher();
  const call = watch(batcher(1, { signal: controller.signal }));
  await clock.settle();
  controller.abort("stop");
  await runs[0]!.finish();
  assert.equal(call.reason, "stop");
});
