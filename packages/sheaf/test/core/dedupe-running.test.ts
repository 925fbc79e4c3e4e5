import assert from "node:assert/strict";
import { test } from "node:test";
import { type BatcherOptions, type BatchRecord, createBatcher } from "../../dist/index.js";
import { assertCode, heldBatcher, type Rig, statuses, values, watch, watchAll } from "../support/rig.js";

/** A batcher whose calls join equal items that run. */
const sharing = (options: BatcherOptions<number, number> = {}): Rig<number, number> =>
  heldBatcher({ dedupe: "running", dedupeKey: (item) => item, ...options });

test("a call joins an equal item that runs, and gets its result when that ends", async () => {
  const { batcher, clock, runs, batches } = sharing();
  const first = watchAll(batcher, [1, 2]);
  await clock.settle();
  const later = watchAll(batcher, [2, 1, 2]);
  await clock.settle();
  assert.equal(batcher.stats().queued, 0);
  await runs[0]!.finish([10, 20]);
  assert.deepEqual(values([...first, ...later]), [10, 20, 20, 10, 20]);
  assert.deepEqual(batches(), [[1, 2]]);
});

test("a run that has ended is not joined: the next call runs again", async () => {
  const { batcher, clock, runs, batches } = sharing();
  watchAll(batcher, [1]);
  await clock.settle();
  await runs[0]!.finish();
  const next = watch(batcher(1));
  await clock.settle();
  await runs[1]!.finish([100]);
  assert.equal(next.value, 100);
  assert.deepEqual(batches(), [[1], [1]]);
});

test("a call that joins a run shares its error, and its item's own", async () => {
  const { batcher, clock, runs } = sharing({ concurrency: 2 });
  watchAll(batcher, [1]);
  await clock.settle();
  const failed = watch(batcher(1));
  const error = new Error("the run failed");
  await runs[0]!.fail(error);
  assert.equal(failed.reason, error);

  watchAll(batcher, [2]);
  await clock.settle();
  const alone = watch(batcher(2));
  const own = new Error("2 is bad");
  await runs[1]!.finish([own]);
  assert.equal(alone.reason, own);
});

test("a call that joins a run needs no room in the queue", async () => {
  const { batcher, clock, runs } = sharing({ maxBatchSize: 1, maxQueueSize: 1 });
  watchAll(batcher, [1]);
  await clock.settle();
  watchAll(batcher, [2]);
  const [joined, refused] = watchAll(batcher, [1, 3]);
  await clock.settle();
  assertCode(refused, "QUEUE_FULL");
  await runs[0]!.finish();
  assert.equal(joined!.value, 1);
});

test("a call that joins a run keeps its own deadline and signal; the run ends for the others", async () => {
  const { batcher, clock, runs } = sharing();
  const controller = new AbortController();
  const calls = [watch(batcher(1))];
  await clock.settle();
  calls.push(watch(batcher(1, { timeoutMs: 5 })), watch(batcher(1, { signal: controller.signal })));
  controller.abort(new Error("gone"));
  await clock.advanceAsync(5);
  assert.deepEqual(statuses(calls), ["pending", "rejected", "rejected"]);
  assertCode(calls[1], "TIMEOUT");
  await runs[0]!.finish();
  assert.equal(calls[0]!.value, 1);
});

test("the signal of a run aborts only when those who joined it have left too", async () => {
  const { batcher, clock, runs } = sharing();
  const [first, second] = [new AbortController(), new AbortController()];
  watch(batcher(1, { signal: first.signal }));
  await clock.settle();
  watch(batcher(1, { signal: second.signal }));
  first.abort();
  await clock.settle();
  assert.equal(runs[0]!.context.signal.aborted, false);
  const third = watch(batcher(1, { signal: second.signal }));
  second.abort();
  await clock.settle();
  assert.equal(runs[0]!.context.signal.aborted, true);
  assert.equal(third.status, "rejected");
});

test("a run that every caller has left is not joined", async () => {
  const { batcher, clock, runs, batches } = sharing({ concurrency: 2 });
  const controller = new AbortController();
  watch(batcher(1, { signal: controller.signal }));
  watch(batcher(2));
  await clock.settle();
  controller.abort();
  const next = watch(batcher(1));
  await clock.settle();
  assert.deepEqual(batches(), [[1, 2], [1]]);
  await runs[1]!.finish([7]);
  assert.equal(next.value, 7);
});

test("a run that was given up is not joined, not even by those who are notified first", async () => {
  const { batcher, clock, runs, batches } = sharing({ runTimeoutMs: 10, concurrency: 2 });
  const first = watch(batcher(1));
  await clock.settle();
  const again: ReturnType<typeof watch<number>>[] = [];
  runs[0]!.context.signal.addEventListener("abort", () => again.push(watch(batcher(1))));
  await clock.advanceAsync(10);
  assertCode(first, "RUN_TIMEOUT");
  assert.deepEqual(batches(), [[1], [1]]);
  await runs[1]!.finish();
  assert.equal(again[0]!.value, 1);
});

test("a call that joins a bisected batch gets the outcome of its item", async () => {
  const { batcher, clock, runs } = sharing({ onBatchError: "bisect" });
  const first = watchAll(batcher, [1, 2]);
  await clock.settle();
  const early = watchAll(batcher, [1, 2]);
  await runs[0]!.fail(new Error("one is bad"));
  const late = watchAll(batcher, [1, 2]);
  await runs[1]!.finish([10]);
  await runs[2]!.fail(new Error("2 is bad"));
  for (const [good, bad] of [first, early, late]) {
    assert.equal(good!.value, 10);
    assert.equal((bad!.reason as Error).message, "2 is bad");
  }
  assert.equal(runs.length, 3);
});

test("drain and close wait for those who joined a run", async () => {
  const { batcher, clock, runs } = sharing();
  const first = watch(batcher(1));
  await clock.settle();
  const joined = watch(batcher(1));
  const drained = watch(batcher.drain());
  const closed = watch(batcher.close());
  await clock.settle();
  assert.equal(drained.status, "pending");
  await runs[0]!.finish();
  assert.deepEqual(statuses([first, joined, drained, closed]), Array(4).fill("fulfilled"));
});

test("a call that joins a run counts in the statistics with its own latency, and no wait", async () => {
  const { batcher, clock, runs } = sharing();
  const records: BatchRecord[] = [];
  batcher.subscribe((record) => records.push(record));
  const controller = new AbortController();
  watch(batcher(1, { signal: controller.signal, tag: "first" }));
  await clock.advanceAsync(8);
  watch(batcher(1, { tag: "second" }));
  controller.abort();
  await clock.advanceAsync(2);
  await runs[0]!.finish();
  const { items, latencyMs } = batcher.stats();
  assert.deepEqual([items.ok, items.aborted, records[0]!.queueWaitMs, records[0]!.tags], [1, 1, { mean: 0, max: 0 }, ["second"]]); // prettier-ignore
  assert.ok(latencyMs.max < 3, `its latency is its own: ${latencyMs.max}`);
});

test("an immediate call joins a run as any other does", async () => {
  const { batcher, clock, runs, batches } = sharing();
  watch(batcher(1, { priority: "bulk" }));
  await clock.settle();
  const urgent = watch(batcher(1, { priority: "immediate" }));
  await runs[0]!.finish();
  assert.equal(urgent.value, 1);
  assert.deepEqual(batches(), [[1]]);
});

test('"running" needs a dedupeKey, and cannot go with an orderKey', () => {
  const run = (items: number[]): number[] => items;
  const key = (item: number): number => item;
  assert.throws(() => createBatcher(run, { dedupe: "running" }), RangeError);
  assert.throws(() => createBatcher(run, { dedupe: "running", dedupeKey: key, orderKey: key }), /orderKey/);
  assert.throws(() => createBatcher(run, { dedupe: "always" as never, dedupeKey: key }), /"waiting" or "running"/);
  createBatcher(run, { dedupe: "waiting", dedupeKey: key, orderKey: key });
});

test("detailed returns no wait for a call that joined a run", async () => {
  const { batcher, clock, runs } = sharing();
  watch(batcher(1));
  await clock.advanceAsync(5);
  const joined = watch(batcher.detailed(1));
  await clock.advanceAsync(5);
  await runs[0]!.finish();
  const { value, batchSize, queueMs, runMs } = joined.value!;
  assert.deepEqual({ value, batchSize, queueMs, runMs }, { value: 1, batchSize: 1, queueMs: 0, runMs: 10 });
});

test("an item that runs alone neither joins a run nor is joined", async () => {
  const { batcher, clock, batches, finishAll } = sharing({ concurrency: 3 });
  watch(batcher(1));
  await clock.settle();
  watch(batcher(1, { alone: true }));
  await clock.settle();
  watch(batcher(2, { alone: true }));
  await clock.settle();
  watch(batcher(2));
  await finishAll();
  assert.deepEqual(batches(), [[1], [1], [2], [2]]);
});
