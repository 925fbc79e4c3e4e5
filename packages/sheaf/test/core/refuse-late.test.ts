import assert from "node:assert/strict";
import { test } from "node:test";
import { assertCode, heldBatcher, numbers, statuses, timedBatcher, watch, watchAll, type Rig } from "../support/rig.js";

/** Batches of 2 take 10 ms, which it knows; one is in flight and `waiting` items wait. */
async function busy(waiting: number, options: object = {}): Promise<Rig<number, number>> {
  const rig = heldBatcher({ maxBatchSize: 2, refuseLate: 0.5, ...options });
  const { batcher, clock, runs } = rig;
  watchAll(batcher, [0, 0]);
  await clock.advanceAsync(10);
  await runs[0]!.finish();
  watchAll(batcher, numbers(2 + waiting, 1));
  await clock.advanceAsync(0);
  assert.deepEqual(batcher.pending, { queued: waiting, bulk: 0, inFlight: 1 });
  return rig;
}

test("a call that would take more than its share of the deadline is refused at the call, with the numbers", async () => {
  const { batcher, clock } = await busy(4);
  // One batch runs and two wait before it, 10 ms each, then its own.
  const [late, inTime] = [watch(batcher(7, { timeoutMs: 79 })), watch(batcher(8, { timeoutMs: 80 }))];
  await clock.settle();
  const { details, message } = assertCode(late, "QUEUE_FULL");
  assert.deepEqual(details, { expectedMs: 40, timeoutMs: 79, queued: 4, drainMs: 20 });
  assert.match(message, /a result is expected after 40 ms, too late for 79 ms \(timeoutMs\): 4 items wait before it/);
  assert.equal(inTime.status, "pending");
  assert.equal(batcher.stats().items.rejected, 1);
});

test("one pause of a young batcher refuses nobody who would be served in time by batches such as the others", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 32, refuseLate: 0.85 });
  const sizesAndMs = [[1, 8], [7, 8], [7, 8], [7, 8], [8, 1400], [1, 0]] as const; // prettier-ignore
  for (const [run, [size, ms]] of sizesAndMs.entries()) {
    watchAll(batcher, numbers(size));
    await clock.advanceAsync(ms);
    if (ms > 0) await runs[run]!.finish();
  }
  assert.deepEqual(runs.map(({ items }) => items.length), sizesAndMs.map(([size]) => size)); // prettier-ignore
  // At least 29 batches of 7, which took 8 ms each.
  const lists = [30_000, 150].map((timeoutMs) => watch(batcher.settle(numbers(200), { timeoutMs })));
  await clock.settle();
  assert.deepEqual(statuses(lists), ["pending", "rejected"]);
});

test("a list is judged by its last item, and refused whole", async () => {
  const { batcher, clock } = await busy(4);
  const lists = [batcher.settle([7, 8, 9], { timeoutMs: 99 }), batcher.settle([7, 8, 9], { timeoutMs: 100 })].map(
    watch,
  );
  await clock.settle();
  assert.equal(assertCode(lists[0], "QUEUE_FULL").details.expectedMs, 50);
  assert.deepEqual(statuses(lists), ["rejected", "pending"]);
});

test("what a priority overtakes does not count", async () => {
  const { batcher, clock } = await busy(4);
  const calls = (["immediate", "interactive", "bulk"] as const).map((priority) =>
    watch(batcher(7, { priority, timeoutMs: 60 })),
  );
  await clock.settle();
  assert.deepEqual(statuses(calls), ["pending", "rejected", "rejected"]);
});

test("nothing is refused without a deadline, with nothing ahead, before a batch has run, or by default", async () => {
  const waiting = await busy(8);
  const idle = await busy(0);
  const byDefault = await busy(8, { refuseLate: undefined });
  const fresh = heldBatcher({ maxBatchSize: 2, refuseLate: 0.5 });
  watchAll(fresh.batcher, numbers(9));
  const calls = [
    watch(waiting.batcher(1)),
    watch(idle.batcher(1, { timeoutMs: 1 })),
    watch(byDefault.batcher(1, { timeoutMs: 1 })),
    watch(fresh.batcher(1, { timeoutMs: 1 })),
  ];
  await fresh.clock.settle();
  assert.deepEqual(statuses(calls), ["pending", "pending", "pending", "pending"]);
});

test("the batcher's own timeout counts, too", async () => {
  const { batcher, clock } = timedBatcher({ maxBatchSize: 1, refuseLate: 1, timeoutMs: 35 });
  watchAll(batcher, [1]);
  await clock.advanceAsync(10);
  const calls = watchAll(batcher, [2, 3, 4, 5, 6]);
  await clock.advanceAsync(100);
  assert.equal(assertCode(calls[4], "QUEUE_FULL").details.timeoutMs, 35);
  assert.deepEqual(statuses(calls), ["fulfilled", "fulfilled", "fulfilled", "rejected", "rejected"]);
});

test("an unlimited batch takes all that waits: a call waits for what runs, and then for its own", async () => {
  const { batcher, clock } = timedBatcher({ maxBatchSize: Infinity, refuseLate: 1, fixedMs: 10 });
  for (const size of [1, 50, 100, 100]) {
    watchAll(batcher, numbers(size));
    await clock.advanceAsync(10);
  }
  watchAll(batcher, numbers(10));
  await clock.advanceAsync(1);
  watchAll(batcher, numbers(60));
  const calls = [watch(batcher(1, { timeoutMs: 19 })), watch(batcher(1, { timeoutMs: 21 }))];
  await clock.advanceAsync(50);
  assert.deepEqual(statuses(calls), ["rejected", "fulfilled"]);
});

test("refuseLate is a share", () => {
  for (const share of [0, 1.5, Number.NaN, "0.5"]) {
    assert.throws(() => heldBatcher({ refuseLate: share as number }), /refuseLate must be a number > 0 and <= 1, got/);
  }
});
