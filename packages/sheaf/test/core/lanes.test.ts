import assert from "node:assert/strict";
import { test } from "node:test";
import { fixedWindow } from "../../dist/index.js";
import { heldBatcher, holdForEver, numbers, watchAll } from "../support/rig.js";

const immediate = { priority: "immediate" } as const;
const bulk = { priority: "bulk" } as const;

test("an immediate item ends every hold and takes what waits with it", async () => {
  const { batcher, clock, batches } = heldBatcher({ policy: holdForEver() });
  watchAll(batcher, [1, 2]);
  await clock.advanceAsync(1_000);
  assert.deepEqual(batches(), []);
  watchAll(batcher, [3], immediate);
  await clock.settle();
  assert.deepEqual(batches(), [[3, 1, 2]]);
});

test("an immediate item takes the next free slot, before everything that waits", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({ maxBatchSize: 2 });
  watchAll(batcher, numbers(6));
  await clock.settle();
  watchAll(batcher, [100], immediate);
  await clock.settle();
  assert.deepEqual(batches(), [[0, 1]]);
  await runs[0]!.finish();
  assert.deepEqual(batches()[1], [100, 2]);
});

test("immediate items never exceed the concurrency", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 1, concurrency: 2 });
  watchAll(batcher, numbers(2));
  await clock.settle();
  watchAll(batcher, numbers(5), immediate);
  await clock.advanceAsync(100);
  assert.equal(runs.length, 2);
});

test("an immediate item's batch is filled with interactive items, not bulk", async () => {
  const { batcher, clock, batches } = heldBatcher({ policy: holdForEver() });
  watchAll(batcher, [1], bulk);
  watchAll(batcher, [2]);
  watchAll(batcher, [3], immediate);
  await clock.settle();
  assert.deepEqual(batches(), [[3, 2]]);
});

test("immediate items are records with reason immediate", async () => {
  const { batcher, finishAll } = heldBatcher({ policy: holdForEver() });
  watchAll(batcher, [3], immediate);
  await finishAll();
  assert.equal(batcher.stats().reasons.immediate, 1);
});

test("bulk fills what interactive items leave of a batch", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({ maxBatchSize: 4 });
  watchAll(batcher, [0]);
  await clock.settle();
  watchAll(batcher, [10, 11, 12], bulk);
  watchAll(batcher, [1, 2]);
  await clock.settle();
  await runs[0]!.finish();
  assert.deepEqual(batches()[1], [1, 2, 10, 11]);
});

test("interactive items never wait behind bulk ones", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({ maxBatchSize: 2 });
  watchAll(batcher, [0]);
  await clock.settle();
  watchAll(batcher, numbers(6, 10), bulk);
  watchAll(batcher, numbers(4, 1));
  await clock.settle();
  for (let run = 0; run < 3; run++) await runs[run]!.finish();
  assert.deepEqual(batches().slice(1), [
    [1, 2],
    [3, 4],
    [10, 11],
  ]);
});

test("bulk runs alone when nothing else waits", async () => {
  const { batcher, clock, batches } = heldBatcher();
  watchAll(batcher, [10, 11], bulk);
  await clock.settle();
  assert.deepEqual(batches(), [[10, 11]]);
});

test("an immediate item never overtakes an earlier item of its orderKey", async () => {
  const { batcher, clock, batches, finishAll } = heldBatcher<string>({
    policy: holdForEver(),
    orderKey: (item) => item[0],
    maxBatchSize: 1,
  });
  watchAll(batcher, ["a1", "b1"]);
  watchAll(batcher, ["a2"], immediate);
  await clock.settle();
  await finishAll();
  void batcher.flush();
  await finishAll();
  assert.ok(batches().flat().indexOf("a1") < batches().flat().indexOf("a2"), String(batches()));
});

test("an immediate item waits for a running item of its orderKey", async () => {
  const { batcher, clock, runs, batches } = heldBatcher<string>({ orderKey: (item) => item[0], concurrency: 2 });
  watchAll(batcher, ["a1"]);
  await clock.settle();
  watchAll(batcher, ["a2"], immediate);
  await clock.settle();
  assert.deepEqual(batches(), [["a1"]]);
  await runs[0]!.finish();
  assert.deepEqual(batches(), [["a1"], ["a2"]]);
});

test("an immediate item ends a window without touching the next one", async () => {
  const { batcher, clock, batches, finishAll } = heldBatcher({ policy: fixedWindow(), maxWaitMs: 10 });
  watchAll(batcher, [1]);
  await clock.advanceAsync(4);
  watchAll(batcher, [2], immediate);
  await clock.settle();
  assert.equal(batches().length, 1);
  await finishAll();
  watchAll(batcher, [3]);
  await clock.advanceAsync(9);
  assert.equal(batches().length, 1);
  await clock.advanceAsync(1);
  assert.deepEqual(batches()[1], [3]);
});

for (const [what, options] of [
  ["without weights", {}],
  ["with weights", { weigh: () => 1, maxBatchWeight: 10 }],
  ["with order", { orderKey: (item: number) => item }],
] as const) {
  test(`maxWaitMs holds for a bulk item behind interactive ones, ${what}`, async () => {
    const { batcher, clock, batches, finishAll } = heldBatcher({
      policy: holdForEver(),
      maxWaitMs: 10,
      maxBatchSize: 1,
      concurrency: 3,
      ...options,
    });
    watchAll(batcher, [1], bulk);
    await clock.advanceAsync(8);
    watchAll(batcher, [2]);
    await clock.advanceAsync(2);
    assert.deepEqual(batches(), [[2], [1]]);
    await finishAll();
  });
}

test("stats() tells live calls from bulk ones, once both have come", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 2, maxQueueSize: 3 });
  watchAll(batcher, [1, 2], bulk);
  await clock.settle();
  watchAll(batcher, [3, 4, 5, 6], bulk);
  await clock.advanceAsync(30);
  assert.equal(batcher.stats().lanes, null);
  watchAll(batcher, [7, 8, 9, 10]);
  const counts = (): unknown => {
    const { live, bulk } = batcher.stats().lanes!;
    const of = ({ queued, dispatched, rejected }: typeof live): number[] => [queued, dispatched, rejected];
    return { live: of(live), bulk: of(bulk), oldestMs: bulk.oldestMs };
  };
  // Two were sent at once, and three of the other four had room.
  assert.deepEqual(counts(), { live: [3, 0, 1], bulk: [3, 2, 1], oldestMs: 30 });
  await runs[0]!.finish();
  await clock.advanceAsync(5);
  await runs[1]!.finish();
  assert.deepEqual(counts(), { live: [0, 3, 1], bulk: [2, 3, 1], oldestMs: 35 });
  const { lanes, latencyMs } = batcher.stats();
  assert.deepEqual([lanes!.live.latencyMs.max, lanes!.bulk.latencyMs.max, latencyMs.max], [5, 30, 30]);
});

for (const [what, own] of [
  ["with its own batch", [1, 2]],
  ["that a live call joined", [1, 2, -1]],
] as const) {
  test(`the wait of a bulk item ${what} is none of a live call, though the two are equal`, async () => {
    const { batcher, clock, runs, finishAll } = heldBatcher({
      maxBatchSize: 1,
      dedupeKey: (item) => Math.abs(item),
    });
    watchAll(batcher, [0], bulk);
    watchAll(batcher, own.filter((item) => item > 0), bulk); // prettier-ignore
    watchAll(batcher, own.filter((item) => item > 0), bulk); // prettier-ignore
    await clock.advanceAsync(400);
    watchAll(batcher, own.filter((item) => item < 0)); // prettier-ignore
    await runs[0]!.finish();
    await finishAll();
    watchAll(batcher, [5]);
    await finishAll();
    const { live, bulk: behind } = batcher.stats().lanes!;
    assert.ok(live.latencyMs.p99 <= 1, String(live.latencyMs.p99));
    assert.equal(behind.latencyMs.max, 400);
  });
}

test("an immediate item that its orderKey blocks does not end the holds of others", async () => {
  const { batcher, clock, batches, runs } = heldBatcher<string>({
    policy: fixedWindow(),
    maxWaitMs: 10,
    orderKey: (item) => item[0],
    concurrency: 3,
  });
  watchAll(batcher, ["a1"], immediate);
  await clock.settle();
  watchAll(batcher, ["a2"], immediate);
  watchAll(batcher, ["b1"]);
  await clock.advanceAsync(9);
  assert.deepEqual(batches(), [["a1"]]);
  await clock.advanceAsync(1);
  assert.deepEqual(batches(), [["a1"], ["b1"]]);
  await runs[0]!.finish();
  assert.deepEqual(batches(), [["a1"], ["b1"], ["a2"]]);
});
