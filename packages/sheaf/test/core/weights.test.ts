import assert from "node:assert/strict";
import { test } from "node:test";
import { assertCode, heldBatcher, statuses, watch, watchAll } from "../support/rig.js";

const itself = (item: number): number => item;

test("sum: a batch stays within maxBatchWeight", async () => {
  const { batcher, finishAll, batches } = heldBatcher({ weigh: itself, maxBatchWeight: 10 });
  watchAll(batcher, [4, 4, 4, 6, 1, 10]);
  await finishAll();
  assert.deepEqual(batches(), [[4, 4], [4, 6], [1], [10]]);
});

test("padded: a batch's weight is its largest item × its count", async () => {
  const { batcher, finishAll, batches } = heldBatcher({ weigh: itself, maxBatchWeight: 12, batchWeight: "padded" });
  watchAll(batcher, [1, 1, 1, 5, 5, 5, 4, 4, 4]);
  await finishAll();
  assert.deepEqual(batches(), [
    [1, 1, 1],
    [5, 5],
    [5, 4],
    [4, 4],
  ]);
});

test("an item above maxBatchWeight runs alone", async () => {
  for (const batchWeight of ["sum", "padded"] as const) {
    const { batcher, finishAll, batches } = heldBatcher({ weigh: itself, maxBatchWeight: 10, batchWeight });
    const calls = watchAll(batcher, [1, 11, 2]);
    await finishAll();
    assert.deepEqual(batches(), [[1], [11], [2]]);
    assert.deepEqual(statuses(calls), ["fulfilled", "fulfilled", "fulfilled"]);
  }
});

test("an item above maxItemWeight is ITEM_TOO_LARGE for that caller only", async () => {
  for (const maxBatchWeight of [undefined, 5, 20]) {
    const { batcher, finishAll, batches } = heldBatcher({ weigh: itself, maxItemWeight: 10, maxBatchWeight });
    const calls = watchAll(batcher, [1, 11, 2]);
    await finishAll();
    const { message } = assertCode(calls[1], "ITEM_TOO_LARGE");
    assert.match(message, /11/);
    assert.match(message, /10/);
    assert.deepEqual(batches().flat(), [1, 2]);
    assert.deepEqual(statuses(calls), ["fulfilled", "rejected", "fulfilled"]);
  }
});

test("an item of exactly maxBatchWeight is fine, and one of weight 0 always fits", async () => {
  const { batcher, finishAll, batches } = heldBatcher({ weigh: itself, maxBatchWeight: 10 });
  watchAll(batcher, [10, 0, 0]);
  await finishAll();
  assert.deepEqual(batches(), [[10, 0, 0]]);
});

test("a batch that its weight closed is full and does not wait for maxBatchSize", async () => {
  const { batcher, clock, batches } = heldBatcher({
    weigh: itself,
    maxBatchWeight: 10,
    policy: {
      name: "full",
      decide: ({ waiting, maxBatchSize }) => (waiting >= maxBatchSize ? { run: waiting } : "wait"),
    },
  });
  watchAll(batcher, [6, 6]);
  await clock.settle();
  assert.deepEqual(batches(), [[6]]);
});

test("both limits hold: a batch stays within maxBatchSize and maxBatchWeight", async () => {
  const { batcher, finishAll, batches } = heldBatcher({ weigh: itself, maxBatchWeight: 10, maxBatchSize: 3 });
  watchAll(batcher, [1, 1, 1, 1, 9, 9]);
  await finishAll();
  assert.deepEqual(batches(), [[1, 1, 1], [1, 9], [9]]);
});

test("items of one lane keep their order whatever they weigh", async () => {
  const { batcher, finishAll, batches } = heldBatcher({ weigh: itself, maxBatchWeight: 10 });
  watchAll(batcher, [9, 8, 1, 2, 7]);
  await finishAll();
  assert.deepEqual(batches().flat(), [9, 8, 1, 2, 7]);
});

test("weigh is called once an item, on arrival", async () => {
  const weighed: number[] = [];
  const { batcher, clock, finishAll } = heldBatcher({
    weigh: (item) => {
      weighed.push(item);
      return item;
    },
    maxBatchWeight: 10,
    maxBatchSize: 2,
  });
  watchAll(batcher, [1, 2, 3]);
  assert.deepEqual(weighed, [1, 2, 3]);
  await clock.settle();
  await finishAll();
  assert.deepEqual(weighed, [1, 2, 3]);
});

test("a throwing weigh fails its own call with that error and never hangs the rest", async () => {
  const boom = new Error("cannot weigh 2");
  const { batcher, finishAll } = heldBatcher({
    weigh: (item) => {
      if (item === 2) throw boom;
      return 1;
    },
    maxBatchWeight: 10,
  });
  const calls = watchAll(batcher, [1, 2, 3]);
  await finishAll();
  calls.push(...watchAll(batcher, [4]));
  await finishAll();
  assert.deepEqual(statuses(calls), ["fulfilled", "rejected", "fulfilled", "fulfilled"]);
  assert.equal(calls[1]!.reason, boom);
});

for (const weight of [Number.NaN, -1, Infinity, "3", undefined, null]) {
  test(`a weight of ${String(weight)} fails its own call with an error that shows what it got`, async () => {
    const { batcher, finishAll } = heldBatcher({
      weigh: (item) => (item === 2 ? (weight as number) : 1),
      maxBatchWeight: 10,
    });
    const calls = watchAll(batcher, [1, 2, 3]);
    await finishAll();
    assert.deepEqual(statuses(calls), ["fulfilled", "rejected", "fulfilled"]);
    assert.ok(calls[1]!.reason instanceof Error);
    assert.match((calls[1]!.reason as Error).message, /weigh/);
  });
}

test("a throwing weigh inside a list fails that item only", async () => {
  const boom = new Error("cannot weigh 2");
  const { batcher, finishAll } = heldBatcher({
    weigh: (item) => {
      if (item === 2) throw boom;
      return 1;
    },
  });
  const list = watch(batcher.settle([1, 2, 3]));
  await finishAll();
  assert.deepEqual(list.value, [
    { status: "fulfilled", value: 1 },
    { status: "rejected", reason: boom },
    { status: "fulfilled", value: 3 },
  ]);
});

test("a record carries the weight of its batch; without weigh it is the size", async () => {
  for (const [options, weight] of [
    [{ weigh: itself }, 5],
    [{ weigh: itself, batchWeight: "padded" as const }, 6],
    [{}, 2],
  ] as const) {
    const { batcher, finishAll } = heldBatcher(options);
    const weights: number[] = [];
    batcher.subscribe((record) => weights.push(record.weight));
    watchAll(batcher, [2, 3]);
    await finishAll();
    assert.deepEqual(weights, [weight]);
  }
});
