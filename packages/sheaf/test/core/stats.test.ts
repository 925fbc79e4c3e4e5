import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher, type BatchRecord } from "../../dist/index.js";
import type { RunHandle } from "../../dist/executors.js";
import { manualClock } from "../../dist/testing/index.js";
import { heldBatcher, holdForEver, numbers, timedBatcher, watch, watchAll } from "../support/rig.js";

test("a fresh batcher's statistics are zeros and nulls, never NaN", () => {
  const stats = heldBatcher({ name: "fresh" }).batcher.stats();
  assert.deepEqual(stats.items, { ok: 0, error: 0, timeout: 0, aborted: 0, rejected: 0 });
  assert.deepEqual(
    [stats.name, stats.queued, stats.inFlight, stats.batches, stats.bisectRuns, stats.abandonedRuns],
    ["fresh", 0, 0, 0, 0, 0],
  );
  assert.deepEqual([stats.meanBatchSize, stats.fillRate], [0, 0]);
  for (const distribution of [stats.queueWaitMs, stats.runMs, stats.latencyMs]) {
    assert.deepEqual(distribution, { p50: 0, p95: 0, p99: 0, max: 0 });
  }
  assert.deepEqual([stats.costModel, stats.cost], [null, null]);
  const measuring = { verdict: "measuring", batchSize: 0, speedup: null, low: null, high: null, runs: 0 };
  assert.deepEqual(stats.verdict, { ...measuring, cause: "few-runs", start: null });
  const noReasons = { full: 0, idle: 0, hold: 0, window: 0, flush: 0, drain: 0, immediate: 0, weight: 0 };
  assert.deepEqual(stats.reasons, noReasons);
  assert.ok(Array.isArray(stats.advice));
  assert.ok(!JSON.stringify(stats).includes("NaN"));
});

test("items are counted by outcome, and the counts add up to the calls", async () => {
  const { batcher, clock, runs, finishAll } = heldBatcher({ maxBatchSize: 4, maxQueueSize: 4 });
  const controller = new AbortController();
  watchAll(batcher, [1, 2, 3]);
  watchAll(batcher, [4], { signal: controller.signal });
  await clock.settle();
  controller.abort();
  watchAll(batcher, [5], { timeoutMs: 10 });
  watchAll(batcher, [6, 7, 8]);
  watchAll(batcher, [9]);
  await clock.advanceAsync(10);
  await runs[0]!.finish([1, new Error("2"), 3, 4]);
  await finishAll();
  assert.deepEqual(batcher.stats().items, { ok: 5, error: 1, timeout: 1, aborted: 1, rejected: 1 });
});

test("queued and inFlight are what waits and what runs", async () => {
  const { batcher, clock, finishAll } = heldBatcher({ maxBatchSize: 2, concurrency: 2 });
  watchAll(batcher, numbers(7));
  await clock.settle();
  assert.deepEqual([batcher.stats().queued, batcher.stats().inFlight], [3, 2]);
  await finishAll();
  assert.deepEqual([batcher.stats().queued, batcher.stats().inFlight], [0, 0]);
});

test("batches, mean size and fill rate", async () => {
  const { batcher, finishAll } = heldBatcher({ maxBatchSize: 4 });
  watchAll(batcher, numbers(6));
  await finishAll();
  const { batches, meanBatchSize, fillRate } = batcher.stats();
  assert.equal(batches, 2);
  assert.equal(meanBatchSize, 3);
  assert.equal(fillRate, 0.75);
});

test("the fill rate is the larger of item and weight fill", async () => {
  const { batcher, finishAll } = heldBatcher({ maxBatchSize: 100, weigh: (item) => item, maxBatchWeight: 10 });
  watchAll(batcher, [4, 4]);
  await finishAll();
  assert.ok(Math.abs(batcher.stats().fillRate - 0.8) < 1e-9);
});

test("queueWaitMs, runMs and latencyMs are measured on the batcher's clock", async () => {
  const { batcher, clock } = timedBatcher({ fixedMs: 100, maxBatchSize: 1 });
  watchAll(batcher, [1, 2]);
  await clock.advanceAsync(1_000);
  const { queueWaitMs, runMs, latencyMs } = batcher.stats();
  near(runMs.p50, 100);
  near(runMs.max, 100);
  near(queueWaitMs.max, 100);
  near(latencyMs.max, 200);
  assert.ok(latencyMs.p50 <= latencyMs.p95 && latencyMs.p95 <= latencyMs.p99 && latencyMs.p99 <= latencyMs.max * 1.05);
});

test("distributions forget what is older than 60 s", async () => {
  const { batcher, clock, runs } = heldBatcher();
  watchAll(batcher, [1]);
  await clock.advanceAsync(5_000);
  await runs[0]!.finish();
  near(batcher.stats().runMs.max, 5_000);
  await clock.advanceAsync(130_000);
  watchAll(batcher, [2]);
  await clock.advanceAsync(10);
  await runs[1]!.finish();
  near(batcher.stats().runMs.max, 10);
  assert.equal(batcher.stats().batches, 2);
});

test("reasons count the batches by why they went", async () => {
  const { batcher, clock, finishAll } = heldBatcher({ policy: holdForEver(), maxBatchSize: 4, maxWaitMs: 50 });
  watchAll(batcher, [1]);
  await clock.advanceAsync(50);
  await finishAll();
  watchAll(batcher, [2]);
  void batcher.flush();
  await finishAll();
  watchAll(batcher, [3], { priority: "immediate" });
  await finishAll();
  const { reasons, batches } = batcher.stats();
  assert.equal(
    Object.values(reasons).reduce((sum, count) => sum + count, 0),
    batches,
  );
  assert.equal(reasons.flush, 1);
  assert.equal(reasons.immediate, 1);
});

test("a full batch has reason full, one that its weight closed has reason weight", async () => {
  const { batcher, finishAll } = heldBatcher({ maxBatchSize: 2, weigh: (item) => item, maxBatchWeight: 10 });
  watchAll(batcher, [1, 1, 9, 9]);
  await finishAll();
  assert.equal(batcher.stats().reasons.full, 1, JSON.stringify(batcher.stats().reasons));
  assert.equal(batcher.stats().reasons.weight, 1, JSON.stringify(batcher.stats().reasons));
});

test("the cost model finds fixed and per-item cost, with their ranges", async () => {
  const { batcher, clock } = timedBatcher({ fixedMs: 40, perItemMs: 3 });
  for (let round = 0; round < 100; round++) {
    watchAll(batcher, numbers(1 + ((round * 7) % 20)));
    await clock.advanceAsync(1_000);
  }
  const { costModel } = batcher.stats();
  assert.ok(costModel !== null);
  near(costModel.fixedMs, 40, 0.05);
  near(costModel.perItemMs, 3, 0.05);
  const { fixedMsRange, perItemMsRange, runs, basis } = costModel;
  assert.ok(fixedMsRange[0] < 40 && fixedMsRange[1] > 40 && perItemMsRange[0] < 3 && perItemMsRange[1] > 3);
  assert.equal(basis, "runs");
  assert.ok(runs >= 75 && runs <= 84, `${runs} runs`);
});

test("the verdict is the time of the same items one by one ÷ the time their batches ran", async () => {
  const { batcher, clock } = timedBatcher({ fixedMs: 50, perItemMs: 2, maxBatchSize: 10 });
  for (let round = 0; round < 60; round++) {
    watchAll(batcher, numbers([1, 4, 10][round % 3]!));
    await clock.advanceAsync(200);
  }
  const { verdict, speedup, low, high, batchSize, runs } = batcher.stats().verdict;
  assert.equal(runs, 44, "without the first 16");
  near(batchSize, 5);
  near(speedup!, (5 * 52) / (50 + 2 * 5));
  assert.equal(verdict, "gains");
  assert.ok(low! > 4 && low! < speedup! && high! > speedup! && high! <= 5, `${low} to ${high}`);
});

test("no verdict is given before 46 batches, nor of one size", async () => {
  const { batcher, clock } = timedBatcher({ fixedMs: 50, perItemMs: 2, maxBatchSize: 10 });
  for (let round = 0; round < 46; round++) {
    assert.equal(batcher.stats().verdict.verdict, "measuring");
    watchAll(batcher, numbers([1, 4, 10][round % 3]!));
    await clock.advanceAsync(200);
  }
  const same = timedBatcher({ fixedMs: 50, perItemMs: 2, maxBatchSize: 10 });
  for (let round = 0; round < 100; round++) {
    watchAll(same.batcher, numbers(10));
    await same.clock.advanceAsync(200);
  }
  assert.deepEqual([same.batcher.stats().costModel, same.batcher.stats().verdict.verdict], [null, "measuring"]);
});

test("a warm-up shows a first cost model, labelled, and no verdict", async () => {
  const clock = manualClock();
  const runs = [1, 4, 16, 1, 4, 16].map((size) => ({ size, runMs: 10 + size }));
  const executor = { slots: 1, ready: async () => runs, run: async (items: number[]) => items, close: async () => {} };
  const batcher = createBatcher<number, number>(executor, { clock });
  await batcher.ready();
  const { costModel, verdict } = batcher.stats();
  near(costModel!.fixedMs, 10);
  near(costModel!.perItemMs, 1);
  assert.equal(costModel!.basis, "warm-up");
  assert.deepEqual([verdict.verdict, verdict.runs], ["measuring", 0]);
});

test("cost counts runs, items and weight, and what single runs would have cost", async () => {
  const { batcher, finishAll } = heldBatcher({
    price: { perRun: 10, perItem: 1, perWeight: 0.5 },
    weigh: (item) => item,
  });
  watchAll(batcher, [2, 4]);
  await finishAll();
  const { cost } = batcher.stats();
  assert.ok(cost !== null);
  near(cost.total, 10 + 2 + 3);
  near(cost.perItem, 7.5);
  near(cost.perItemUnbatched, 10 + 1 + 1.5);
});

test("padding is paid for: with padded weights cost counts the padded weight", async () => {
  const { batcher, finishAll } = heldBatcher({ price: { perWeight: 1 }, weigh: (item) => item, batchWeight: "padded" });
  watchAll(batcher, [2, 4]);
  await finishAll();
  near(batcher.stats().cost!.total, 8);
});

test("advice is text that a person can read", async () => {
  const { batcher, clock } = timedBatcher({ fixedMs: 0, perItemMs: 5 });
  for (let round = 0; round < 100; round++) {
    watchAll(batcher, numbers(1 + (round % 8)));
    await clock.advanceAsync(200);
  }
  for (const line of batcher.stats().advice)
    assert.ok(line.length > 10 && !line.includes("undefined") && !line.includes("NaN"));
});

test("stats is a snapshot: later calls do not change it", async () => {
  const { batcher, finishAll } = heldBatcher();
  const before = batcher.stats();
  watchAll(batcher, [1]);
  await finishAll();
  assert.equal(before.items.ok, 0);
  assert.equal(before.batches, 0);
});

test("subscribers get one BatchRecord a batch", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 2 });
  const records: BatchRecord[] = [];
  batcher.subscribe((record) => records.push(record));
  const startedAtMs = clock.now();
  watchAll(batcher, [1, 2]);
  await clock.advanceAsync(10);
  watchAll(batcher, [3]);
  await clock.advanceAsync(20);
  await runs[0]!.finish();
  await clock.advanceAsync(5);
  await runs[1]!.fail(new Error("bad"));
  assert.equal(records.length, 2);
  const [first, second] = records;
  assert.deepEqual(
    [first!.batchId, first!.reason, first!.size, first!.weight, first!.startedAtMs - startedAtMs, first!.runMs],
    [1, "full", 2, 2, 0, 30],
  );
  assert.deepEqual([first!.outcome, first!.errorCode, first!.attempt, first!.group], ["ok", undefined, 1, undefined]);
  assert.deepEqual(first!.queueWaitMs, { mean: 0, max: 0 });
  assert.deepEqual(
    [second!.batchId, second!.size, second!.outcome, second!.runMs, second!.queueWaitMs.max],
    [2, 1, "error", 5, 20],
  );
});

test("a batch with an Error in a place is still an ok run", async () => {
  const { batcher, clock, runs } = heldBatcher();
  const outcomes: unknown[] = [];
  batcher.subscribe(({ outcome, failedItems, extraRuns }) => outcomes.push([outcome, failedItems, extraRuns]));
  watchAll(batcher, [1, 2]);
  await clock.settle();
  await runs[0]!.finish([new Error("one"), 2]);
  assert.deepEqual(outcomes, [["ok", 1, 0]]);
});

test("unsubscribe ends it, also from inside a listener, and twice is fine", async () => {
  const { batcher, finishAll } = heldBatcher();
  let heard = 0;
  const unsubscribe = batcher.subscribe(() => {
    heard += 1;
    unsubscribe();
  });
  let others = 0;
  batcher.subscribe(() => (others += 1));
  for (let round = 0; round < 3; round++) {
    watchAll(batcher, [round]);
    await finishAll();
  }
  unsubscribe();
  assert.deepEqual([heard, others], [1, 3]);
});

test("a subscriber that throws is reported once and affects nothing", async (t) => {
  const warn = t.mock.method(console, "warn", () => {});
  const { batcher, finishAll } = heldBatcher();
  let heard = 0;
  batcher.subscribe(() => {
    throw new Error("listener bug");
  });
  batcher.subscribe(() => (heard += 1));
  for (let round = 0; round < 5; round++) {
    const call = watch(batcher(round));
    await finishAll();
    assert.equal(call.value, round);
  }
  assert.equal(heard, 5);
  assert.equal(warn.mock.callCount(), 1);
});

test("an executor that measured the run itself has its runMs used", async () => {
  const { batcher, clock, runs } = heldBatcher();
  const records: number[] = [];
  batcher.subscribe(({ runMs }) => records.push(runMs));
  watchAll(batcher, [1]);
  await clock.advanceAsync(50);
  (runs[0]!.context as RunHandle).measured(12);
  await runs[0]!.finish();
  assert.deepEqual(records, [12]);
});

function near(actual: number, expected: number, tolerance = 0.04): void {
  assert.ok(Math.abs(actual - expected) <= tolerance * Math.abs(expected), `${actual} is not near ${expected}`);
}
