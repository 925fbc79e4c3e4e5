import assert from "node:assert/strict";
import { test } from "node:test";
import { type BatcherError, type BatcherOptions, createBatcher, greedy } from "../../dist/index.js";
import type { RunHandle } from "../../dist/executors.js";
import { manualClock } from "../../dist/testing/index.js";
import { assertCode, heldBatcher, numbers, statuses, watch, watchAll } from "../support/rig.js";

// A failure of a run belongs to the run or to an item, and the search for the item is nobody else's.

const runMs = 10;

/** Items that are negative break their run: -1 throws, -2 never ends. */
function odd(options: BatcherOptions<number, number> = {}, executor: { readonly runsApart?: boolean } = {}) {
  const clock = manualClock();
  const runs: { readonly items: readonly number[]; readonly isApart: boolean; readonly atMs: number }[] = [];
  const found: [number, string][] = [];
  const batcher = createBatcher<number, number>(
    {
      ...executor,
      slots: 1,
      ready: () => Promise.resolve(),
      close: () => Promise.resolve(),
      found: (item, error) => void found.push([item, (error as Error).message.replace(/^.*: a batch.*$/, "hung")]),
      run: (items, handle: RunHandle) => {
        runs.push({ items: [...items], isApart: handle.isApart, atMs: clock.now() });
        return new Promise((resolve, reject) => {
          // Where it has instances, one that hangs can be ended.
          if (executor.runsApart === true)
            handle.onAborted((reason) => (reason as BatcherError).code === "RUN_TIMEOUT" && reject(reason as Error));
          if (items.includes(-2)) return;
          clock.after(runMs, () => (items.includes(-1) ? reject(new Error("bad item")) : resolve(items)));
        });
      },
    },
    { clock, policy: greedy(), maxBatchSize: 8, onBatchError: "bisect", ...options },
  );
  return { batcher, clock, runs, found };
}

test("an item whose run never ends is found by halves, the others get their results, and later calls run", async () => {
  const { batcher, clock, runs, found } = odd({ runTimeoutMs: 1000 });
  const first = watchAll(batcher, [1, 2]);
  await clock.advanceAsync(runMs);
  const calls = watchAll(batcher, [1, 2, 3, -2, 5, 6, 7, 8]);
  await clock.advanceAsync(1000);
  assert.deepEqual(
    statuses(calls),
    Array.from({ length: 8 }, () => "pending"),
  );
  // What a part may take is known from runs of its size.
  await clock.advanceAsync(500);
  assert.deepEqual(
    statuses(calls),
    numbers(8).map((place) => (place === 3 ? "rejected" : "fulfilled")),
  );
  // The limit of a part is nobody's setting.
  const { message, details } = assertCode(calls[3], "RUN_TIMEOUT");
  assert.match(message, /longer than 1000 ms .*took far longer than usual/);
  assert.equal(details.runTimeoutMs, undefined);
  assert.deepEqual(found, [[-2, "hung"]]);
  assert.deepEqual(statuses(first), ["fulfilled", "fulfilled"]);
  const later = watchAll(batcher, [9, 10]);
  await clock.advanceAsync(runMs);
  assert.deepEqual(statuses(later), ["fulfilled", "fulfilled"]);
  assert.ok(runs.length > 6);
});

test("while others wait, the search for a bad item has a fifth of the run time, and they go first", async () => {
  const { batcher, clock, runs } = odd();
  const calls = watchAll(batcher, [-1, 2, 3, 4, 5, 6, 7, 8]);
  await clock.settle();
  let answered = 0;
  // Eight callers that call again at once.
  const keepsCalling = async (item: number): Promise<void> => {
    for (;;) {
      await batcher(item);
      answered++;
    }
  };
  for (const item of numbers(8)) void keepsCalling(item + 100);
  await clock.advanceAsync(1000);
  const parts = runs.filter(({ items }) => items.every((item) => item < 100)).slice(1);
  assert.equal(parts.length, 6);
  for (const [place, { atMs }] of parts.entries())
    assert.ok(place === 0 || atMs - parts[place - 1]!.atMs >= 5 * runMs, `part ${place} began at ${atMs} ms`);
  assert.deepEqual(
    statuses(calls),
    numbers(8).map((place) => (place === 0 ? "rejected" : "fulfilled")),
  );
  assert.equal(answered, 8 * (100 - 1 - parts.length));
});

test("where nothing passes and items fail alike, each alone, the failure is the run's: nobody is found, and it ends", async () => {
  const { batcher, clock, runs, found } = odd();
  const calls = watchAll(
    batcher,
    numbers(8).map(() => -1),
  );
  await clock.advanceAsync(1000);
  assert.ok(calls.every(({ status }) => status === "rejected"));
  // The batch, then 4, 2, 1 and 1 of it.
  assert.deepEqual([runs.length, found.length], [5, 0]);
});

test("an executor that runs parts apart does so after a hang, without a slot, and even when the callers have left", async () => {
  const { batcher, clock, runs, found } = odd({ runTimeoutMs: 1000, timeoutMs: 900 }, { runsApart: true });
  const calls = watchAll(batcher, [1, -2, 3, 4]);
  await clock.advanceAsync(1000);
  for (const call of calls) assertCode(call, "TIMEOUT");
  const other = watch(batcher(9));
  await clock.advanceAsync(runMs);
  assert.equal(other.status, "fulfilled");
  await clock.advanceAsync(5000);
  assert.deepEqual(
    found.map(([item]) => item),
    [-2],
  );
  assert.ok(runs.filter(({ items }) => items.includes(-2)).length >= 3);
  assert.deepEqual([...new Set(runs.slice(1).map(({ items, isApart }) => isApart === !items.includes(9)))], [true]);
});

test("apart, the neighbours of a hung item wait for two short runs of it, and its full time comes last", async () => {
  const { batcher, clock, runs, found } = odd({ runTimeoutMs: 1000, maxBatchSize: 16 }, { runsApart: true });
  void batcher.settle(numbers(16));
  await clock.advanceAsync(runMs);
  const calls = watchAll(
    batcher,
    numbers(16).map((place) => (place === 5 ? -2 : place)),
  );
  // The whole; then four parts of four, and four items: what is bad takes ten times the usual.
  await clock.advanceAsync(1000 + 2 * 10 * runMs + 6 * runMs);
  assert.deepEqual(
    statuses(calls),
    numbers(16).map((place) => (place === 5 ? "pending" : "fulfilled")),
  );
  await clock.advanceAsync(1000);
  const { message, details } = assertCode(calls[5], "RUN_TIMEOUT");
  assert.match(message, /a batch of 1 items ran longer than 1000 ms/);
  assert.equal(details.runTimeoutMs, 1000);
  assert.deepEqual(
    runs.filter(({ items }) => items.includes(-2)).map(({ items }) => items.length),
    [16, 4, 1, 1],
  );
  assert.equal(found.length, 1);
});

test("an order key of a batch whose run never ends is free when both that run and the search have ended", async () => {
  const { batcher, clock, runs } = heldBatcher({
    runTimeoutMs: 100,
    onBatchError: "bisect",
    orderKey: () => "one",
    maxBatchSize: 2,
  });
  const calls = watchAll(batcher, [1, 2, 3]);
  await clock.advanceAsync(100);
  await runs[1]!.finish();
  await runs[2]!.finish();
  assert.deepEqual(statuses(calls), ["fulfilled", "fulfilled", "pending"]);
  assert.equal(runs.length, 3);
  await runs[0]!.finish();
  assert.equal(runs.length, 4);
  await runs[3]!.finish();
  assert.deepEqual(statuses(calls), ["fulfilled", "fulfilled", "fulfilled"]);
});
