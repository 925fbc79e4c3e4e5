import assert from "node:assert/strict";
import { test } from "node:test";
import { BatcherError } from "../../dist/index.js";
import type { RunHandle } from "../../dist/executors.js";
import { assertCode, heldBatcher, statuses, watchAll } from "../support/rig.js";

const letter = (item: string): string => item[0]!;

test("items of one key are never in two batches at once", async () => {
  const { batcher, clock, runs, batches } = heldBatcher<string>({ orderKey: letter, maxBatchSize: 1, concurrency: 3 });
  watchAll(batcher, ["a1", "a2", "a3"]);
  await clock.settle();
  assert.deepEqual(batches(), [["a1"]]);
  await runs[0]!.finish();
  assert.deepEqual(batches(), [["a1"], ["a2"]]);
});

test("items of one key run in order, in one batch or in several", async () => {
  const { batcher, finishAll, batches } = heldBatcher<string>({ orderKey: letter, maxBatchSize: 3, concurrency: 2 });
  watchAll(batcher, ["a1", "b1", "a2", "a3", "b2", "a4", "b3"]);
  await finishAll();
  for (const key of ["a", "b"]) {
    const ran = batches()
      .flat()
      .filter((item) => letter(item) === key);
    assert.deepEqual(ran, [...ran].sort());
  }
});

test("a blocked key does not hold up the others", async () => {
  const { batcher, clock, batches } = heldBatcher<string>({ orderKey: letter, maxBatchSize: 2, concurrency: 2 });
  watchAll(batcher, ["a1", "a2", "a3", "b1"]);
  await clock.settle();
  assert.deepEqual(batches(), [["a1", "a2"], ["b1"]]);
});

test("undefined is not a key: such items run at once, in parallel", async () => {
  const { batcher, clock, runs } = heldBatcher<string>({ orderKey: () => undefined, maxBatchSize: 1, concurrency: 3 });
  watchAll(batcher, ["a1", "a2", "a3"]);
  await clock.settle();
  assert.equal(runs.length, 3);
});

test("keys are compared as in a Map: null, NaN and objects are keys", async () => {
  for (const key of [null, Number.NaN, {}, 0, ""]) {
    const { batcher, clock, runs } = heldBatcher<string>({ orderKey: () => key, maxBatchSize: 1, concurrency: 3 });
    watchAll(batcher, ["a1", "a2"]);
    await clock.settle();
    assert.equal(runs.length, 1, String(key));
  }
});

test("after a failed batch the next item of its key runs", async () => {
  const { batcher, clock, runs, finishAll } = heldBatcher<string>({
    orderKey: letter,
    maxBatchSize: 1,
    concurrency: 2,
  });
  const calls = watchAll(batcher, ["a1", "a2"]);
  await clock.settle();
  await runs[0]!.fail(new Error("a1 failed"));
  await finishAll();
  assert.deepEqual(statuses(calls), ["rejected", "fulfilled"]);
});

test("an aborted waiting item does not block its key", async () => {
  const { batcher, clock, runs, finishAll, batches } = heldBatcher<string>({
    orderKey: letter,
    maxBatchSize: 1,
    concurrency: 2,
  });
  const controller = new AbortController();
  watchAll(batcher, ["a1"]);
  watchAll(batcher, ["a2"], { signal: controller.signal });
  watchAll(batcher, ["a3"]);
  await clock.settle();
  controller.abort();
  await runs[0]!.finish();
  await finishAll();
  assert.deepEqual(batches(), [["a1"], ["a3"]]);
});

test("a throwing orderKey fails its own call only", async () => {
  const boom = new Error("no key");
  const { batcher, finishAll } = heldBatcher<string>({
    orderKey: (item) => {
      if (item === "b1") throw boom;
      return letter(item);
    },
  });
  const calls = watchAll(batcher, ["a1", "b1", "a2"]);
  await finishAll();
  assert.deepEqual(statuses(calls), ["fulfilled", "rejected", "fulfilled"]);
  assert.equal(calls[1]!.reason, boom);
});

test("an abandoned run keeps its keys blocked until it ends", async () => {
  const { batcher, clock, runs, batches } = heldBatcher<string>({
    orderKey: letter,
    maxBatchSize: 1,
    concurrency: 2,
    runTimeoutMs: 100,
  });
  const calls = watchAll(batcher, ["a1", "a2"]);
  await clock.advanceAsync(100);
  assertCode(calls[0], "RUN_TIMEOUT");
  watchAll(batcher, ["b1"]);
  await clock.advanceAsync(50);
  assert.deepEqual(batches(), [["a1"], ["b1"]]);
  await runs[0]!.fail(new BatcherError("WORKER_CRASHED", "gave up at last"));
  assert.deepEqual(batches(), [["a1"], ["b1"], ["a2"]]);
});

test("an executor that settles a run before it has ended keeps its keys blocked until then, and serves others", async () => {
  const { batcher, clock, runs, batches } = heldBatcher<string>({
    orderKey: letter,
    maxBatchSize: 1,
    runTimeoutMs: 100,
  });
  watchAll(batcher, ["a1", "a2", "b1"]);
  await clock.advanceAsync(100);
  let end = (): void => undefined;
  (runs[0]!.context as RunHandle).runsUntil(new Promise<void>((resolve) => (end = resolve)));
  await runs[0]!.fail(new BatcherError("RUN_TIMEOUT", "its thread cannot be stopped"));
  assert.deepEqual(batches(), [["a1"], ["b1"]]);
  await runs[1]!.finish();
  await clock.advanceAsync(10_000);
  assert.deepEqual(batches(), [["a1"], ["b1"]]);
  end();
  await clock.settle();
  assert.deepEqual(batches(), [["a1"], ["b1"], ["a2"]]);
});

test("order holds across lanes: interactive never overtakes an earlier bulk item of its key", async () => {
  const { batcher, clock, runs, batches, finishAll } = heldBatcher<string>({ orderKey: letter, maxBatchSize: 1 });
  watchAll(batcher, ["z"]);
  await clock.settle();
  watchAll(batcher, ["a1"], { priority: "bulk" });
  watchAll(batcher, ["a2"]);
  await runs[0]!.finish();
  await finishAll();
  assert.deepEqual(batches(), [["z"], ["a1"], ["a2"]]);
});

test("concurrency 1 is global order", async () => {
  const { batcher, finishAll, batches } = heldBatcher<string>({ maxBatchSize: 2, concurrency: 1 });
  watchAll(batcher, ["1", "2", "3", "4", "5"]);
  await finishAll();
  assert.deepEqual(batches(), [["1", "2"], ["3", "4"], ["5"]]);
});

test("order holds inside groups, and a key may span groups", async () => {
  const { batcher, finishAll, batches } = heldBatcher<string>({
    groupKey: (item) => item[1],
    orderKey: letter,
    maxBatchSize: 4,
    concurrency: 2,
  });
  const calls = watchAll(batcher, ["ax1", "ay2", "ax3", "bx1"]);
  await finishAll();
  assert.deepEqual(statuses(calls), Array(4).fill("fulfilled"));
  const ran = batches()
    .flat()
    .filter((item) => item[0] === "a");
  assert.deepEqual(ran, ["ax1", "ay2", "ax3"]);
});

test("immediate items of two groups that wait for each other's bulk items do not deadlock", async () => {
  const { batcher, clock, finishAll } = heldBatcher<string>({ orderKey: letter, groupKey: (item) => item[1] });
  const calls = watchAll(batcher, ["ax1", "by1"], { priority: "bulk" });
  calls.push(...watchAll(batcher, ["bx2", "ay2"], { priority: "immediate" }));
  await clock.settle();
  await finishAll();
  assert.deepEqual(statuses(calls), Array(4).fill("fulfilled"));
});

test("an item behind 10,000 blocked ones runs at once, and they run in order when their key is free", async () => {
  const { batcher, clock, runs, finishAll, batches } = heldBatcher<string>({
    orderKey: letter,
    maxBatchSize: 100,
    maxQueueSize: 20_000,
    concurrency: 2,
  });
  watchAll(batcher, ["a0"]);
  await clock.settle();
  const blocked = Array.from({ length: 10_000 }, (_, i) => `a${i + 1}`);
  watchAll(batcher, blocked);
  watchAll(batcher, ["b0"]);
  await clock.settle();
  assert.deepEqual(batches(), [["a0"], ["b0"]]);
  await runs[1]!.finish();
  watchAll(batcher, ["b1"]);
  await clock.settle();
  assert.deepEqual(batches()[2], ["b1"]);
  await finishAll();
  assert.deepEqual(
    batches()
      .flat()
      .filter((item) => letter(item) === "a"),
    ["a0", ...blocked],
  );
  assert.equal(batcher.stats().queued, 0);
});

test("blocked items that were set aside expire, abort, are flushed, and go with close", async () => {
  const { batcher, clock, runs } = heldBatcher<string>({ orderKey: letter, maxBatchSize: 1, concurrency: 2 });
  const controller = new AbortController();
  watchAll(batcher, ["a0"]);
  const expiring = watchAll(batcher, ["a1"], { timeoutMs: 10 });
  const aborting = watchAll(batcher, ["a2"], { signal: controller.signal });
  const [kept, last] = watchAll(batcher, ["a3", "a4"]);
  await clock.settle();
  let flushed = false;
  void batcher.flush().then(() => (flushed = true));
  await clock.advanceAsync(10);
  assertCode(expiring[0], "TIMEOUT");
  controller.abort();
  await clock.settle();
  assert.deepEqual(statuses(aborting), ["rejected"]);
  await runs[0]!.finish();
  assert.deepEqual(runs[1]!.items, ["a3"]);
  await runs[1]!.finish();
  assert.deepEqual(statuses([kept!]), ["fulfilled"]);
  assert.equal(flushed, false);
  const closing = batcher.close({ graceMs: 5 });
  await clock.advanceAsync(5);
  assertCode(last, "CLOSED");
  await runs[2]!.finish();
  await closing;
  assert.equal(flushed, true);
});

test("a drain takes along what came to a higher lane behind newer items", async () => {
  const { batcher, clock, runs, batches } = heldBatcher<string>({
    orderKey: letter,
    policy: { name: "holds forever", decide: () => "wait" },
  });
  watchAll(batcher, ["z1"], { priority: "immediate" });
  await clock.settle();
  watchAll(batcher, ["a1"], { priority: "bulk" });
  let drained = false;
  void batcher.drain().then(() => (drained = true));
  watchAll(batcher, ["b1", "a2"]);
  await runs[0]!.finish();
  assert.deepEqual(batches(), [["z1"], ["b1", "a1", "a2"]]);
  await runs[1]!.finish();
  assert.equal(drained, true);
});
