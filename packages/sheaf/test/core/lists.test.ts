import assert from "node:assert/strict";
import { test } from "node:test";
import { assertCode, heldBatcher, numbers, timedBatcher, watch, watchAll } from "../support/rig.js";

test("many gives the results of its items in order", async () => {
  const { batcher, finishAll } = timedBatcher({ maxBatchSize: 3 });
  const list = watch(batcher.many(numbers(10)));
  await finishAll();
  assert.deepEqual(list.value, numbers(10));
});

test("many([]) is [] and settle([]) is [], and no batch runs", async () => {
  const { batcher, runs } = heldBatcher();
  assert.deepEqual(await batcher.many([]), []);
  assert.deepEqual(await batcher.settle([]), []);
  assert.equal(runs.length, 0);
});

test("many takes any iterable", async () => {
  const { batcher, finishAll } = timedBatcher();
  const lists = [new Set([1, 2]), new Map([[1, 2]]).values(), numbers(3).values()].map((items) =>
    watch(batcher.many(items)),
  );
  await finishAll();
  assert.deepEqual(
    lists.map(({ value }) => value),
    [[1, 2], [2], [0, 1, 2]],
  );
});

test("settle gives the outcome of every item in order and never rejects for one of them", async () => {
  const { batcher, runs, clock } = heldBatcher();
  const list = watch(batcher.settle([1, 2, 3]));
  await clock.settle();
  const bad = new Error("bad");
  await runs[0]!.finish([10, bad, 30]);
  assert.deepEqual(list.value, [
    { status: "fulfilled", value: 10 },
    { status: "rejected", reason: bad },
    { status: "fulfilled", value: 30 },
  ]);
});

test("a list longer than maxBatchSize is split in order, and its batches are shared with other callers", async () => {
  const { batcher, batches, finishAll } = timedBatcher({ maxBatchSize: 4 });
  const before = watch(batcher(100));
  const list = watch(batcher.many(numbers(6)));
  const after = watch(batcher(200));
  await finishAll();
  assert.deepEqual(batches(), [
    [100, 0, 1, 2],
    [3, 4, 5, 200],
  ]);
  assert.deepEqual([before.value, list.value, after.value], [100, numbers(6), 200]);
});

test("a list longer than maxQueueSize is fine: the queue never holds more than maxQueueSize", async () => {
  const { batcher, clock, batches } = timedBatcher({ maxBatchSize: 4, maxQueueSize: 10 });
  const list = watch(batcher.many(numbers(1_000)));
  let most = 0;
  while (list.status === "pending" && batches().length < 300) {
    most = Math.max(most, batcher.stats().queued);
    await clock.advanceAsync(10);
  }
  assert.deepEqual(list.value, numbers(1_000));
  assert.deepEqual(batches().flat(), numbers(1_000));
  assert.ok(most <= 10, `${most} items were queued`);
});

test("a list longer than the queue keeps every batch full", async () => {
  const { batcher, batches, finishAll } = timedBatcher({ maxBatchSize: 8, maxQueueSize: 8 });
  watch(batcher.many(numbers(80)));
  await finishAll();
  assert.ok(
    batches()
      .slice(1)
      .every((batch) => batch.length === 8),
    String(batches().map(({ length }) => length)),
  );
});

for (const method of ["many", "settle"] as const) {
  test(`${method} is refused whole only if the queue is full at the call, and nothing is enqueued`, async () => {
    const { batcher, clock, batches, finishAll } = heldBatcher({ maxBatchSize: 1, maxQueueSize: 2 });
    watchAll(batcher, [0]);
    await clock.settle();
    watchAll(batcher, [1, 2]);
    await clock.settle();
    const refused = watch<unknown>(batcher[method]([7, 8]));
    await clock.settle();
    assertCode(refused, "QUEUE_FULL");
    await finishAll();
    assert.deepEqual(batches().flat(), [0, 1, 2]);
  });

  test(`${method} is accepted when the queue has room for one`, async () => {
    const { batcher, clock, finishAll } = heldBatcher({ maxBatchSize: 1, maxQueueSize: 2 });
    watchAll(batcher, [0]);
    await clock.settle();
    watchAll(batcher, [1]);
    const list = watch<unknown>(batcher[method]([7, 8, 9]));
    await finishAll();
    assert.equal(list.status, "fulfilled");
  });
}

test("many rejects with the first error, while its other items run on", async () => {
  const { batcher, clock, runs, batches, finishAll } = heldBatcher({ maxBatchSize: 2 });
  const list = watch(batcher.many(numbers(6)));
  await clock.settle();
  const bad = new Error("bad");
  await runs[0]!.finish([0, bad]);
  assert.equal(list.status, "rejected");
  assert.equal(list.reason, bad);
  await finishAll();
  assert.deepEqual(batches().flat(), numbers(6));
  assert.equal(batcher.stats().items.ok, 5);
  assert.equal(batcher.stats().items.error, 1);
});

test("many rejects with the error that came first in time", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 1, concurrency: 2 });
  const list = watch(batcher.many([1, 2]));
  await clock.settle();
  const [first, second] = [new Error("slot 0"), new Error("slot 1")];
  await runs[1]!.fail(second);
  await runs[0]!.fail(first);
  assert.equal(list.reason, second);
});

test("aborting a list withdraws every waiting item, also those not yet in the queue", async () => {
  const { batcher, clock, runs, batches, finishAll } = heldBatcher({ maxBatchSize: 2, maxQueueSize: 4 });
  const controller = new AbortController();
  const list = watch(batcher.many(numbers(20), { signal: controller.signal }));
  await clock.settle();
  const reason = new Error("changed my mind");
  controller.abort(reason);
  await clock.settle();
  assert.equal(list.reason, reason);
  assert.equal(batcher.stats().queued, 0);
  await runs[0]!.finish();
  await finishAll();
  assert.deepEqual(batches(), [[0, 1]]);
});

test("aborting a settle list settles it: what ran is fulfilled, the rest is rejected with the reason", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 2, maxQueueSize: 4 });
  const controller = new AbortController();
  const list = watch(batcher.settle(numbers(6), { signal: controller.signal }));
  await clock.settle();
  await runs[0]!.finish();
  const reason = new Error("enough");
  controller.abort(reason);
  await clock.settle();
  assert.equal(list.status, "fulfilled");
  assert.deepEqual(list.value?.slice(0, 2), [
    { status: "fulfilled", value: 0 },
    { status: "fulfilled", value: 1 },
  ]);
  for (const outcome of list.value!.slice(2)) assert.deepEqual(outcome, { status: "rejected", reason });
});

test("an aborted signal refuses a list before anything is enqueued", async () => {
  const { batcher, clock, runs } = heldBatcher();
  const reason = new Error("already gone");
  const list = watch(batcher.many([1, 2], { signal: AbortSignal.abort(reason) }));
  await clock.settle();
  assert.equal(list.reason, reason);
  assert.equal(runs.length, 0);
});

test("a list's timeoutMs starts at the call, for the items still out of the queue too", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 2, maxQueueSize: 2 });
  const list = watch(batcher.settle(numbers(8), { timeoutMs: 100 }));
  await clock.advanceAsync(60);
  await runs[0]!.finish();
  await clock.advanceAsync(39);
  assert.equal(list.status, "pending");
  await clock.advanceAsync(1);
  assert.equal(list.status, "fulfilled");
  assert.equal(list.value!.filter(({ status }) => status === "fulfilled").length, 2);
  for (const outcome of list.value!.slice(2)) {
    assertCode({ status: "rejected", reason: outcome.status === "rejected" && outcome.reason }, "TIMEOUT");
  }
  assert.equal(batcher.stats().queued, 0);
});

test("behind a feeding list a single call gets QUEUE_FULL", async () => {
  const { batcher, clock, finishAll } = heldBatcher({ maxBatchSize: 2, maxQueueSize: 4 });
  const list = watch(batcher.many(numbers(40)));
  await clock.settle();
  const refused = watch(batcher(100));
  await clock.settle();
  assertCode(refused, "QUEUE_FULL");
  await finishAll();
  assert.equal(list.status, "fulfilled");
});

test('behind a feeding list a single call is taken item-wise in arrival order with onQueueFull "wait"', async () => {
  const { batcher, batches, clock, finishAll } = heldBatcher({ maxBatchSize: 2, maxQueueSize: 4, onQueueFull: "wait" });
  const first = watch(batcher.many(numbers(20)));
  await clock.settle();
  const single = watch(batcher(100));
  await finishAll();
  assert.equal(first.status, "fulfilled");
  assert.equal(single.value, 100);
  assert.deepEqual(
    batches()
      .flat()
      .filter((item) => item < 100),
    numbers(20),
  );
});

test("two lists longer than the queue both finish, each in its own order", async () => {
  const { batcher, batches, clock, finishAll } = heldBatcher({ maxBatchSize: 3, maxQueueSize: 5, onQueueFull: "wait" });
  const lists = [watch(batcher.many(numbers(40))), watch(batcher.many(numbers(40, 1_000)))];
  await clock.settle();
  await finishAll();
  assert.deepEqual(lists[0]!.value, numbers(40));
  assert.deepEqual(lists[1]!.value, numbers(40, 1_000));
  assert.deepEqual(
    batches()
      .flat()
      .filter((item) => item < 1_000),
    numbers(40),
  );
});

test("the caller's array is neither changed nor handed to the batch function", async () => {
  const { batcher, finishAll } = heldBatcher();
  const items = Object.freeze(numbers(5));
  const list = watch(batcher.many(items));
  await finishAll();
  assert.deepEqual(list.value, numbers(5));
  assert.notEqual(list.value, items);
});

test("what is not iterable is a TypeError, and nothing is enqueued", async () => {
  const { batcher, clock, runs } = heldBatcher();
  for (const wrong of [undefined, null, 3, {}]) {
    for (const method of ["many", "settle"] as const) {
      const list = watch<unknown>((async () => batcher[method](wrong as never))());
      await clock.settle();
      assert.ok(list.reason instanceof TypeError, `${method}(${String(wrong)})`);
    }
  }
  assert.equal(runs.length, 0);
});

for (const kind of ["many", "settle", "settleDetailed"] as const)
  test(`${kind} is of the items at the call, whatever the caller does with its array afterwards`, async () => {
    const changes: readonly ((array: number[]) => unknown)[] = [
      (array) => (array.length = 0),
      (array) => array.pop(),
      (array) => array.push(99),
      (array) => array.fill(7),
    ];
    for (const change of changes) {
      const { batcher, finishAll, batches } = timedBatcher({ maxQueueSize: 4, maxBatchSize: 2 });
      const array = numbers(20);
      const list = watch<readonly unknown[]>(batcher[kind](array));
      change(array);
      await finishAll();
      assert.equal(list.value?.length, 20);
      assert.deepEqual(batches().flat(), numbers(20));
      assert.deepEqual(batcher.pending, { queued: 0, bulk: 0, inFlight: 0 });
      await batcher.close();
    }
  });

test("map keeps the options of its call", async () => {
  const { batcher, clock } = timedBatcher({ fixedMs: 50 });
  const options = { timeoutMs: 1000 };
  const results = batcher.map([1, 2], options);
  options.timeoutMs = 1;
  const first = watch(results.next());
  await clock.advanceAsync(60);
  assert.equal(first.status, "fulfilled");
});

test("a list whose keys call the batcher keeps its order and the bound of the queue", async () => {
  let most = 0;
  const { batcher, finishAll, batches } = timedBatcher({
    maxQueueSize: 3,
    maxBatchSize: 1,
    onQueueFull: "wait",
    groupKey: (item: number) => {
      if (item < 100) batcher(item + 100).catch(() => undefined);
      most = Math.max(most, batcher.pending.queued);
      return undefined;
    },
  });
  const list = watch(batcher.many(numbers(20)));
  await finishAll();
  assert.deepEqual(list.value, numbers(20));
  const own = batches()
    .flat()
    .filter((item) => item < 100);
  assert.deepEqual(own, numbers(20));
  assert.ok(most <= 3, `${most} items waited`);
});
