import assert from "node:assert/strict";
import { test } from "node:test";
import type { BatcherOptions } from "../../dist/index.js";
import { assertCode, heldBatcher, numbers, statuses, watch, watchAll, type HeldRun } from "../support/rig.js";

const busy = (retryAfterMs?: number): Error => Object.assign(new Error("429"), { retryAfterMs });

/** Ends a run as a service's refusal for which the items are not to blame. */
async function refuse<T>(run: HeldRun<T, T>, retryAfterMs?: number): Promise<void> {
  run.context.putBack();
  await run.fail(busy(retryAfterMs));
}

test("items that are put back run again, before those that came later; no slot is held meanwhile", async () => {
  const { batcher, clock, runs, batches, finishAll } = heldBatcher({ maxBatchSize: 3 });
  const calls = watchAll(batcher, numbers(3));
  await clock.settle();
  calls.push(...watchAll(batcher, [10, 11, 12, 13]));
  await refuse(runs[0]!, 500);
  assert.deepEqual(batcher.pending, { queued: 7, bulk: 0, inFlight: 0 });
  await clock.advanceAsync(499);
  assert.equal(runs.length, 1);
  await clock.advanceAsync(1);
  await finishAll();
  assert.deepEqual(batches(), [[0, 1, 2], [0, 1, 2], [10, 11, 12], [13]]);
  assert.deepEqual(statuses(calls), Array(7).fill("fulfilled"));
  assert.equal(batcher.stats().items.ok, 7);
});

test("batches that come back in another order than they went go in their old order", async () => {
  for (const order of [
    [0, 1, 2],
    [2, 1, 0],
    [1, 2, 0],
  ]) {
    for (const sameBurst of [true, false]) {
      const { batcher, clock, runs, batches, finishAll } = heldBatcher({ maxBatchSize: 2, concurrency: 3 });
      for (const item of numbers(6)) {
        watch(batcher(item));
        if (!sameBurst && item % 2 === 1) await clock.advanceAsync(1);
      }
      await clock.settle();
      watchAll(batcher, [6, 7]);
      for (const index of order) await refuse(runs[index]!, 100);
      await clock.advanceAsync(100);
      await finishAll();
      assert.deepEqual(batches().slice(3), [[0, 1], [2, 3], [4, 5], [6, 7]], `${order} ${sameBurst}`); // prettier-ignore
    }
  }
});

test("each item keeps its lane: bulk that came back stays behind interactive items", async () => {
  const { batcher, clock, runs, batches, finishAll } = heldBatcher({ maxBatchSize: 2 });
  watchAll(batcher, [1, 2], { priority: "bulk" });
  await clock.settle();
  await refuse(runs[0]!, 100);
  watchAll(batcher, [3, 4]);
  watchAll(batcher, [5], { priority: "immediate" });
  await clock.advanceAsync(100);
  await finishAll();
  assert.deepEqual(batches(), [[1, 2], [5, 3], [4, 1], [2]]); // prettier-ignore
});

const keyed: [string, BatcherOptions<number, number>][] = [
  ["groups", { groupKey: (item) => item % 2 }],
  ["order keys", { orderKey: (item) => item % 2 }],
  ["one order", { orderKey: () => 0 }],
  ["tenants", { fairKey: (item) => item % 2 }],
  ["equal items", { dedupeKey: (item) => item % 5 }],
  ["equal items that run", { dedupeKey: (item) => item % 5, dedupe: "running" }],
  ["tenants of equal items", { fairKey: (item) => item % 2, dedupeKey: (item) => item % 5 }],
  ["weights", { weigh: (item) => (item % 3) + 1, maxBatchWeight: 6 }],
];
for (const [name, options] of keyed) {
  test(`every call of a batch that is put back settles once, and nothing is left behind: ${name}`, async () => {
    const { batcher, clock, runs, finishAll } = heldBatcher({ maxBatchSize: 4, concurrency: 2, ...options });
    const calls = watchAll(batcher, numbers(10));
    await clock.settle();
    for (let round = 0; round < 3; round++) {
      const open = runs.slice(round * 2, round * 2 + 2);
      calls.push(...watchAll(batcher, numbers(6, 20 + 10 * round)));
      await Promise.all(open.map((run) => refuse(run, 50)));
      await clock.advanceAsync(50);
    }
    await finishAll();
    await clock.advanceAsync(10_000);
    await finishAll();
    assert.deepEqual(statuses(calls), Array(28).fill("fulfilled"));
    assert.deepEqual(batcher.pending, { queued: 0, bulk: 0, inFlight: 0 });
    assert.equal(batcher.stats().items.ok, 28);
    await batcher.close();
  });
}

test("items of one order key keep their order over refusals", async () => {
  const { batcher, clock, runs, batches, finishAll } = heldBatcher({
    maxBatchSize: 2,
    concurrency: 2,
    orderKey: () => 0,
  });
  watchAll(batcher, numbers(6));
  await clock.settle();
  await refuse(runs[0]!, 10);
  await clock.advanceAsync(10);
  await refuse(runs[1]!, 10);
  await clock.advanceAsync(10);
  await finishAll();
  assert.deepEqual(batches().slice(2), [[0, 1], [2, 3], [4, 5]]); // prettier-ignore
});

test("an abort ends a call whose item was put back; one whose deadline comes before the pause ends gets the error", async () => {
  const { batcher, clock, runs, batches, finishAll } = heldBatcher({ maxBatchSize: 3 });
  const controller = new AbortController();
  const aborted = watch(batcher(1, { signal: controller.signal }));
  const late = watch(batcher(2, { timeoutMs: 50 }));
  const fine = watch(batcher(3));
  await clock.settle();
  const waiting = watch(batcher(4, { timeoutMs: 90 }));
  const timely = watch(batcher(5, { timeoutMs: 200 }));
  await refuse(runs[0]!, 100);
  controller.abort(new Error("gone"));
  for (const call of [late, waiting]) assert.equal((call.reason as Error).message, "429");
  await clock.advanceAsync(100);
  await finishAll();
  assert.equal((aborted.reason as Error).message, "gone");
  assert.equal(fine.value, 3);
  assert.equal(timely.value, 5);
  assert.deepEqual(batches(), [[1, 2, 3], [3, 5]]); // prettier-ignore
});

test("after maxPauseMs of pauses a call without a deadline gets the error, also one that only waited", async () => {
  const { batcher, clock, runs, finishAll } = heldBatcher({ maxBatchSize: 1, maxPauseMs: 1000 });
  const [first, second] = watchAll(batcher, [1, 2]);
  const timed = watch(batcher(3, { timeoutMs: 5000 }));
  await clock.settle();
  for (const round of numbers(3)) {
    await refuse(runs[round]!, 400);
    if (round === 1) assert.deepEqual(statuses([first!, second!]), ["pending", "pending"]);
    if (round < 2) await clock.advanceAsync(400);
  }
  for (const call of [first!, second!]) assert.equal((call.reason as Error).message, "429");
  assert.equal(batcher.stats().items.error, 2);
  const later = watch(batcher(4));
  await clock.advanceAsync(400);
  await finishAll();
  assert.deepEqual(statuses([timed, later]), ["fulfilled", "fulfilled"]);
});

test("an item that is always put back without a pause gets its error after 1000 runs", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 1 });
  const call = watch(batcher(1));
  for (let run = 0; run <= 1000; run++) {
    await clock.advanceAsync(1);
    if (run < runs.length) await refuse(runs[run]!);
  }
  assert.equal((call.reason as Error).message, "429");
  assert.equal(runs.length, 1001);
});

test("a part of a bisection that is put back takes what is left of the batch with it", async () => {
  const { batcher, clock, runs, batches, finishAll } = heldBatcher({ maxBatchSize: 4, onBatchError: "bisect" });
  const calls = watchAll(batcher, numbers(4));
  await clock.settle();
  await runs[0]!.fail(new Error("one of them is wrong"));
  await runs[1]!.finish();
  await refuse(runs[2]!, 100);
  assert.deepEqual(batcher.pending, { queued: 2, bulk: 0, inFlight: 0 });
  await clock.advanceAsync(100);
  await finishAll();
  assert.deepEqual(batches(), [[0, 1, 2, 3], [0, 1], [2, 3], [2, 3]]); // prettier-ignore
  assert.deepEqual(statuses(calls), Array(4).fill("fulfilled"));
});

test("a refused batch has a record of its own kind, and statistics do not count it", async () => {
  const { batcher, clock, runs, finishAll } = heldBatcher({ maxBatchSize: 2 });
  const outcomes: string[] = [];
  batcher.subscribe(({ outcome }) => outcomes.push(outcome));
  watchAll(batcher, [1, 2]);
  await clock.settle();
  await refuse(runs[0]!, 10);
  await clock.advanceAsync(10);
  await finishAll();
  assert.deepEqual(outcomes, ["refused", "ok"]);
  assert.equal(batcher.stats().batches, 1);
});

test("putBack has no effect on a run that succeeds, or whose callers have left", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 1, concurrency: 2 });
  const controller = new AbortController();
  const fine = watch(batcher(1));
  watch(batcher(2, { signal: controller.signal }));
  await clock.settle();
  runs[0]!.context.putBack();
  await runs[0]!.finish();
  controller.abort();
  await refuse(runs[1]!, 10);
  await clock.advanceAsync(1000);
  assert.equal(fine.value, 1);
  assert.equal(runs.length, 2);
});

test("drain and close wait for items that were put back; a grace period cuts them off", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 1 });
  const call = watch(batcher(1));
  await clock.settle();
  await refuse(runs[0]!, 10_000);
  const closed = watch(batcher.close({ graceMs: 500 }));
  await clock.advanceAsync(499);
  assert.equal(closed.status, "pending");
  await clock.advanceAsync(1);
  assertCode(call, "CLOSED");
  assert.equal(closed.status, "fulfilled");
});

test("reportWeight corrects the rate limit by the difference, also below zero, and twice only by the last", async () => {
  const { batcher, clock, runs } = heldBatcher({
    maxBatchSize: 1,
    weigh: () => 50,
    rateLimit: { weight: 100, perMs: 1000 },
  });
  watchAll(batcher, numbers(4));
  await clock.settle();
  runs[0]!.context.reportWeight(70);
  runs[0]!.context.reportWeight(10);
  await runs[0]!.finish();
  runs[1]!.context.reportWeight(190);
  await runs[1]!.finish();
  await clock.advanceAsync(999);
  assert.equal(runs.length, 2, "200 count in this period, twice what may go");
  await clock.advanceAsync(1);
  assert.equal(runs.length, 3);
  for (const wrong of [-1, Number.NaN, Infinity])
    assert.throws(() => runs[2]!.context.reportWeight(wrong), /reportWeight: the weight must be a finite number >= 0/);
});
