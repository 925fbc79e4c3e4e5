import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher, type Executor, greedy } from "../../dist/index.js";
import { manualClock } from "../../dist/testing/index.js";
import { assertCode, heldBatcher, holdForEver, numbers, statuses, values, watch, watchAll } from "../support/rig.js";

test("flush: what waits now goes without further holding, as slots come free", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({ policy: holdForEver(), maxBatchSize: 2 });
  watchAll(batcher, numbers(5));
  await clock.settle();
  const flushed = watch(batcher.flush());
  await clock.settle();
  assert.deepEqual(batches(), [[0, 1]]);
  await runs[0]!.finish();
  await runs[1]!.finish();
  assert.equal(flushed.status, "pending");
  await runs[2]!.finish();
  assert.deepEqual(batches(), [[0, 1], [2, 3], [4]]);
  assert.equal(flushed.status, "fulfilled");
});

test("flush resolves when those have settled: what came later is held again and not waited for", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({ policy: holdForEver(), maxBatchSize: 2 });
  watchAll(batcher, [1, 2]);
  const flushed = watch(batcher.flush());
  await clock.settle();
  watchAll(batcher, [3]);
  await runs[0]!.finish();
  assert.equal(flushed.status, "fulfilled");
  await clock.advanceAsync(10_000);
  assert.deepEqual(batches(), [[1, 2]]);
});

test("flush resolves at once when nothing waits, and does not wait for later items", async () => {
  const { batcher, clock } = heldBatcher({ policy: holdForEver() });
  const flushed = watch(batcher.flush());
  await clock.settle();
  assert.equal(flushed.status, "fulfilled");
  watchAll(batcher, [1]);
  await clock.advanceAsync(1_000);
  assert.equal(batcher.stats().queued, 1);
});

test("flush and drain resolve though the batches failed", async () => {
  for (const end of ["flush", "drain"] as const) {
    const { batcher, clock, runs } = heldBatcher();
    watchAll(batcher, [1]);
    const ended = watch(batcher[end]());
    await clock.settle();
    await runs[0]!.fail(new Error("bad"));
    assert.equal(ended.status, "fulfilled", end);
  }
});

test("flush resolves when its items were aborted or timed out", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 1 });
  const controller = new AbortController();
  watchAll(batcher, [0]);
  await clock.settle();
  watchAll(batcher, [1], { signal: controller.signal });
  watchAll(batcher, [2], { timeoutMs: 10 });
  const flushed = watch(batcher.flush());
  await clock.settle();
  controller.abort();
  await clock.advanceAsync(10);
  await runs[0]!.finish();
  assert.equal(flushed.status, "fulfilled");
});

test("records say flush and drain", async () => {
  for (const end of ["flush", "drain"] as const) {
    const { batcher, clock, finishAll } = heldBatcher({ policy: holdForEver() });
    watchAll(batcher, [1]);
    await clock.settle();
    void batcher[end]();
    await finishAll();
    assert.equal(batcher.stats().reasons[end], 1, JSON.stringify(batcher.stats().reasons));
  }
});

test("drain flushes and resolves when everything accepted before it has settled, running batches included", async () => {
  const { batcher, clock, runs } = heldBatcher({ policy: holdForEver(), maxBatchSize: 2 });
  watchAll(batcher, [1], { priority: "immediate" });
  await clock.settle();
  watchAll(batcher, [2]);
  const drained = watch(batcher.drain());
  await clock.settle();
  watchAll(batcher, [3]);
  await runs[0]!.finish();
  assert.equal(drained.status, "pending");
  await runs[1]!.finish();
  assert.equal(drained.status, "fulfilled");
});

test("drain waits for calls that wait for room and for feeding lists", async () => {
  const { batcher, clock, finishAll } = heldBatcher({ maxBatchSize: 2, maxQueueSize: 2, onQueueFull: "wait" });
  const list = watch(batcher.many(numbers(20)));
  const single = watch(batcher(100));
  await clock.settle();
  const drained = watch(batcher.drain());
  await finishAll();
  assert.deepEqual([list.status, single.status, drained.status], ["fulfilled", "fulfilled", "fulfilled"]);
});

test("an idle batcher is drained at once", async () => {
  const { batcher } = heldBatcher();
  await batcher.drain();
});

test("close is one promise", () => {
  const { batcher } = heldBatcher();
  assert.equal(batcher.close(), batcher.close({ graceMs: 5 }));
});

test("close refuses new calls with CLOSED, of every kind", async () => {
  const { batcher, clock } = heldBatcher();
  void batcher.close();
  const calls = [
    watch<unknown>(batcher(1)),
    watch<unknown>(batcher.many([1])),
    watch<unknown>(batcher.settle([1])),
    watch<unknown>(batcher.map([1]).next()),
  ];
  await clock.settle();
  for (const call of calls) assertCode(call, "CLOSED");
});

test("close finishes what is in, callers that wait for room included, without holding", async () => {
  const { batcher, clock, finishAll, batches } = heldBatcher({
    policy: holdForEver(),
    maxBatchSize: 2,
    maxQueueSize: 2,
    onQueueFull: "wait",
  });
  const calls = watchAll(batcher, [1, 2, 3, 4]);
  await clock.settle();
  const closed = watch(batcher.close());
  await finishAll();
  assert.deepEqual(values(calls), [1, 2, 3, 4]);
  assert.deepEqual(batches(), [
    [1, 2],
    [3, 4],
  ]);
  assert.equal(closed.status, "fulfilled");
});

test("close finishes feeding lists", async () => {
  const { batcher, clock, finishAll } = heldBatcher({ maxBatchSize: 2, maxQueueSize: 2 });
  const list = watch(batcher.many(numbers(20)));
  await clock.settle();
  const closed = watch(batcher.close());
  await finishAll();
  assert.deepEqual(list.value, numbers(20));
  assert.equal(closed.status, "fulfilled");
});

test("close finishes bisections", async () => {
  const { batcher, clock, runs } = heldBatcher({ onBatchError: "bisect" });
  const calls = watchAll(batcher, [1, 2]);
  await clock.settle();
  const closed = watch(batcher.close());
  await runs[0]!.fail(new Error("bad batch"));
  await runs[1]!.finish();
  assert.equal(closed.status, "pending");
  await runs[2]!.finish();
  assert.deepEqual(values(calls), [1, 2]);
  assert.equal(closed.status, "fulfilled");
});

test("after graceMs the rest gets CLOSED and running batches' signals abort", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({ maxBatchSize: 1, maxQueueSize: 2, onQueueFull: "wait" });
  const calls = watchAll(batcher, [1]);
  await clock.settle();
  calls.push(...watchAll(batcher, [2, 3, 4]));
  const closed = watch(batcher.close({ graceMs: 100 }));
  await clock.advanceAsync(99);
  assert.deepEqual(statuses(calls), Array(4).fill("pending"));
  assert.equal(runs[0]!.context.signal.aborted, false);
  await clock.advanceAsync(1);
  for (const call of calls) assertCode(call, "CLOSED");
  assert.equal(runs[0]!.context.signal.aborted, true);
  assert.equal(closed.status, "fulfilled");
  await runs[0]!.finish();
  assert.deepEqual(batches(), [[1]]);
});

test("graceMs 0 ends everything at once", async () => {
  const { batcher, clock } = heldBatcher({ maxBatchSize: 1 });
  const calls = watchAll(batcher, [1, 2]);
  await clock.settle();
  const closed = watch(batcher.close({ graceMs: 0 }));
  await clock.settle();
  for (const call of calls) assertCode(call, "CLOSED");
  assert.equal(closed.status, "fulfilled");
});

test("a grace period that is not needed leaves no timer", async () => {
  const { batcher, clock, finishAll } = heldBatcher({ timeoutMs: 50, runTimeoutMs: 1_000 });
  watchAll(batcher, [1]);
  const closed = watch(batcher.close({ graceMs: 10_000 }));
  await finishAll();
  assert.equal(closed.status, "fulfilled");
  assert.equal(clock.pending, 0);
});

test("a run that was cut off and never ends leaves no timer", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 1, runTimeoutMs: 60_000 });
  const [call] = watchAll(batcher, [1]);
  await clock.settle();
  const closed = watch(batcher.close({ graceMs: 10 }));
  await clock.advanceAsync(10);
  assertCode(call!, "CLOSED");
  assert.equal(closed.status, "fulfilled");
  assert.equal(clock.pending, 0);
  await runs[0]!.finish();
  assert.equal(clock.pending, 0);
});

test("an idle batcher closes at once; flush, drain and stats still work", async () => {
  const { batcher } = heldBatcher();
  await batcher.close();
  await batcher.flush();
  await batcher.drain();
  assert.equal(batcher.stats().queued, 0);
});

test("`await using` closes", async () => {
  const { batcher, clock, finishAll } = heldBatcher();
  const call = watch(batcher(1));
  const disposed = watch(batcher[Symbol.asyncDispose]());
  await finishAll();
  assert.deepEqual([call.value, disposed.status], [1, "fulfilled"]);
  const refused = watch(batcher(2));
  await clock.settle();
  assertCode(refused, "CLOSED");
});

/** An executor that echoes after 10 ms on the clock and counts its closings. */
function countingExecutor(
  clock: ReturnType<typeof manualClock>,
): Executor<number, number> & { closed: number; running: number } {
  const executor = {
    slots: 2,
    closed: 0,
    running: 0,
    ready: () => Promise.resolve(),
    run: (items: number[]) => {
      executor.running += 1;
      return new Promise<number[]>((resolve) => {
        clock.after(10, () => {
          executor.running -= 1;
          resolve(items);
        });
      });
    },
    close: () => {
      assert.equal(executor.running, 0, "closed while it ran");
      executor.closed += 1;
      return Promise.resolve();
    },
  };
  return executor;
}

test("close closes the executor once, after the last batch", async () => {
  const clock = manualClock();
  const executor = countingExecutor(clock);
  const batcher = createBatcher(executor, { clock, policy: greedy(), maxBatchSize: 1 });
  const calls = watchAll(batcher, numbers(5));
  await clock.settle();
  const closed = watch(batcher.close());
  void batcher.close();
  await clock.advanceAsync(100);
  assert.deepEqual(values(calls), numbers(5));
  assert.equal(closed.status, "fulfilled");
  assert.equal(executor.closed, 1);
});

test("an executor's slots are the default concurrency, and its methods keep their this", async () => {
  const clock = manualClock();
  class TwoSlots {
    readonly slots = 2;
    most = 0;
    running = 0;
    ready(): Promise<void> {
      return this.running === 0 ? Promise.resolve() : Promise.reject(new Error("busy"));
    }
    async run(items: number[]): Promise<number[]> {
      this.running += 1;
      this.most = Math.max(this.most, this.running);
      await new Promise<void>((resolve) => clock.after(10, resolve));
      this.running -= 1;
      return items;
    }
    async close(): Promise<void> {
      this.running = -1;
    }
  }
  const executor = new TwoSlots();
  const batcher = createBatcher(executor, { clock, policy: greedy(), maxBatchSize: 1 });
  await batcher.ready();
  const calls = watchAll(batcher, numbers(6));
  await clock.advanceAsync(100);
  assert.deepEqual(values(calls), numbers(6));
  assert.equal(executor.most, 2);
  await batcher.close();
  assert.equal(executor.running, -1);
});

test("ready is the executor's: it rejects with the reason it never will be", async () => {
  const broken = new Error("no such model");
  const batcher = createBatcher<number, number>({
    slots: 1,
    ready: () => Promise.reject(broken),
    run: async (items) => items,
    close: async () => {},
  });
  await assert.rejects(batcher.ready(), broken);
});

test("a function is ready at once", async () => {
  await heldBatcher().batcher.ready();
});

test("an executor whose run throws synchronously rejects its callers only", async () => {
  const boom = new Error("boom");
  let runs = 0;
  const batcher = createBatcher<number, number>(
    {
      slots: 1,
      ready: async () => {},
      run: (items) => {
        runs += 1;
        if (runs === 1) throw boom;
        return Promise.resolve(items);
      },
      close: async () => {},
    },
    { policy: greedy() },
  );
  await assert.rejects(batcher(1), boom);
  assert.equal(await batcher(2), 2);
});
