import assert from "node:assert/strict";
import { test } from "node:test";
import { type Batcher, createBatcher, greedy } from "../../dist/index.js";
import type { RunHandle } from "../../dist/executors.js";
import { manualClock } from "../../dist/testing/index.js";
import { assertCode, heldBatcher, statuses, watch, watchAll } from "../support/rig.js";

test("past runTimeoutMs the signal aborts and every caller of the batch gets RUN_TIMEOUT", async () => {
  const { batcher, clock, runs } = heldBatcher({ runTimeoutMs: 100 });
  const calls = watchAll(batcher, [1, 2]);
  await clock.advanceAsync(99);
  assert.deepEqual(statuses(calls), ["pending", "pending"]);
  assert.equal(runs[0]!.context.signal.aborted, false);
  await clock.advanceAsync(1);
  const { message } = assertCode(calls[0], "RUN_TIMEOUT");
  assertCode(calls[1], "RUN_TIMEOUT");
  assert.match(message, /100/);
  assert.equal(runs[0]!.context.signal.aborted, true);
});

test("the slot is freed and the abandoned run is counted", async () => {
  const { batcher, clock, batches } = heldBatcher({ runTimeoutMs: 100, concurrency: 2, maxBatchSize: 1 });
  watchAll(batcher, [1, 2, 3]);
  await clock.advanceAsync(50);
  assert.deepEqual(batches(), [[1], [2]]);
  assert.equal(batcher.stats().abandonedRuns, 0);
});

test("one abandoned run of two slots leaves a free slot", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({ runTimeoutMs: 100, concurrency: 2, maxBatchSize: 1 });
  watchAll(batcher, [1]);
  await clock.advanceAsync(60);
  watchAll(batcher, [2]);
  await clock.advanceAsync(10);
  await runs[1]!.finish();
  await clock.advanceAsync(30);
  assert.equal(batcher.stats().abandonedRuns, 1);
  assert.equal(batcher.stats().inFlight, 0);
  watchAll(batcher, [3, 4]);
  await clock.settle();
  assert.deepEqual(batches(), [[1], [2], [3], [4]]);
});

test("while runs that were given up take every slot, calls fail after a bounded time, new ones at once, until one ends", async (t) => {
  const warned = t.mock.method(console, "warn", () => undefined);
  for (const onQueueFull of ["reject", "wait"] as const) {
    const { batcher, clock, runs, batches, finishAll } = heldBatcher({
      runTimeoutMs: 100,
      concurrency: 2,
      maxBatchSize: 1,
      maxQueueSize: 2,
      onQueueFull,
    });
    watchAll(batcher, [1, 2]);
    await clock.advanceAsync(100);
    const later = watchAll(batcher, [3, 4, 5]);
    await clock.advanceAsync(999);
    assert.deepEqual([batches(), later[0]!.status, batcher.stats().hungRuns], [[[1], [2]], "pending", 2]);
    await clock.advanceAsync(1);
    const { message, details } = assertCode(later[0], "RUN_TIMEOUT");
    assert.match(message, /2 runs that were given up \(runTimeoutMs\) and have not ended/);
    assert.deepEqual(details, { hungRuns: 2, runTimeoutMs: 100 });
    assertCode(later[2], onQueueFull === "wait" ? "RUN_TIMEOUT" : "QUEUE_FULL");
    const refused = watch(batcher(6));
    await clock.settle();
    assertCode(refused, "RUN_TIMEOUT");
    await assert.rejects(batcher.ready(), /have not ended/);
    await runs[0]!.finish();
    const next = watch(batcher(7));
    await finishAll();
    assert.deepEqual([next.value, batcher.stats().hungRuns, batches()], [7, 0, [[1], [2], [7]]]);
  }
  assert.equal(warned.mock.callCount(), 0);
});

test("a batcher that is closed while its slots hang stays closed when they end", async () => {
  const { batcher, clock, runs } = heldBatcher({ runTimeoutMs: 100, maxBatchSize: 1 });
  watchAll(batcher, [1, 2]);
  await clock.advanceAsync(2000);
  await batcher.close();
  await runs[0]!.finish();
  const call = watch(batcher(3));
  await clock.settle();
  assertCode(call, "CLOSED");
});

test("a call that times out behind runs that hang, or that all wait for their own batcher, says so", async (t) => {
  t.mock.method(console, "warn", () => undefined);
  const { batcher, clock } = heldBatcher({ runTimeoutMs: 100, maxBatchSize: 1 });
  watchAll(batcher, [1]);
  await clock.advanceAsync(100);
  const behind = watch(batcher(2, { timeoutMs: 500 }));
  await clock.advanceAsync(500);
  assert.match(assertCode(behind, "TIMEOUT").message, /have not ended\.$/);
  const selfClock = manualClock();
  const self: Batcher<number, number> = createBatcher(
    async (items: number[]) => Promise.all(items.map((item) => (item > 0 ? self(item - 1, { timeoutMs: 300 }) : 0))),
    { clock: selfClock, concurrency: 1, name: "self" },
  );
  const call = watch(self(3));
  await selfClock.advanceAsync(300);
  assert.match(assertCode(call, "TIMEOUT").message, /will not run\. Every running batch has called this batcher: /);
});

test("the results of an abandoned run reach no caller and do no harm", async () => {
  for (const end of ["finish", "fail"] as const) {
    const { batcher, clock, runs, finishAll } = heldBatcher({ runTimeoutMs: 100, maxBatchSize: 1 });
    const call = watch(batcher(1));
    await clock.advanceAsync(100);
    if (end === "finish") await runs[0]!.finish([99]);
    else await runs[0]!.fail(new Error("late"));
    assertCode(call, "RUN_TIMEOUT");
    const next = watch(batcher(2));
    await finishAll();
    assert.equal(next.value, 2);
  }
});

test("drain and close do not wait for an abandoned run", async () => {
  for (const end of ["drain", "close"] as const) {
    const { batcher, clock } = heldBatcher({ runTimeoutMs: 100 });
    watchAll(batcher, [1]);
    await clock.advanceAsync(50);
    const ended = watch(batcher[end]());
    await clock.advanceAsync(49);
    assert.equal(ended.status, "pending", end);
    await clock.advanceAsync(1);
    assert.equal(ended.status, "fulfilled", end);
  }
});

test("close with items still waiting behind abandoned runs settles them", async () => {
  const { batcher, clock } = heldBatcher({ runTimeoutMs: 100, maxBatchSize: 1 });
  const calls = watchAll(batcher, [1, 2]);
  await clock.advanceAsync(100);
  const closed = watch(batcher.close({ graceMs: 900 }));
  await clock.advanceAsync(900);
  assert.equal(closed.status, "fulfilled");
  assertCode(calls[1], "CLOSED");
});

test("a run that ends in time is not abandoned and leaves no timer", async () => {
  const { batcher, clock, runs } = heldBatcher({ runTimeoutMs: 100 });
  watchAll(batcher, [1]);
  await clock.advanceAsync(99);
  await runs[0]!.finish();
  await clock.advanceAsync(1_000);
  assert.equal(batcher.stats().abandonedRuns, 0);
  assert.equal(clock.pending, 0);
});

test("a run that failed by its timeout is an error record with errorCode RUN_TIMEOUT", async () => {
  const { batcher, clock } = heldBatcher({ runTimeoutMs: 100 });
  const records: unknown[] = [];
  batcher.subscribe(({ outcome, errorCode, runMs }) => records.push([outcome, errorCode, runMs]));
  watchAll(batcher, [1]);
  await clock.advanceAsync(100);
  assert.deepEqual(records, [["error", "RUN_TIMEOUT", 100]]);
});

test("a caller's shorter timeoutMs still counts while the run goes on", async () => {
  const { batcher, clock } = heldBatcher({ runTimeoutMs: 100, timeoutMs: 40 });
  const call = watch(batcher(1));
  await clock.advanceAsync(40);
  assertCode(call, "TIMEOUT");
});

test("a part of a bisection past runTimeoutMs fails for that, and the other parts run", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({ runTimeoutMs: 100, onBatchError: "bisect" });
  const calls = watchAll(batcher, [1, 2, 3, 4]);
  await clock.settle();
  await runs[0]!.fail(new Error("one of them is bad"));
  await clock.advanceAsync(100);
  assert.deepEqual(batches().slice(1), [[1, 2], [1]]);
  await clock.advanceAsync(100);
  await runs[3]!.finish();
  await runs[4]!.finish();
  assertCode(calls[0], "RUN_TIMEOUT");
  assert.deepEqual(statuses(calls), ["rejected", "fulfilled", "fulfilled", "fulfilled"]);
  // The runs that go on were found to do so for one item: they hold nobody's slot.
  const next = watchAll(batcher, [5, 6]);
  await clock.settle();
  await runs[5]!.finish();
  assert.deepEqual(statuses(next), ["fulfilled", "fulfilled"]);
});

test("an executor that reports the start of its runs has runTimeoutMs counted from there, again for each attempt", async () => {
  const clock = manualClock();
  const handles: RunHandle[] = [];
  const executor = {
    slots: 2,
    reportsStart: true,
    ready: () => Promise.resolve(),
    close: () => Promise.resolve(),
    run: (_items: number[], handle: RunHandle) => {
      handles.push(handle);
      return new Promise<number[]>(() => undefined);
    },
  };
  const batcher = createBatcher(executor, { clock, policy: greedy(), maxBatchSize: 1, runTimeoutMs: 100 });
  const [first, second] = watchAll(batcher, [1, 2]);
  await clock.advanceAsync(5000);
  handles[0]!.started();
  await clock.advanceAsync(90);
  handles[0]!.started();
  await clock.advanceAsync(99);
  assert.deepEqual(statuses([first!, second!]), ["pending", "pending"]);
  await clock.advanceAsync(1);
  assertCode(first, "RUN_TIMEOUT");
  assert.equal(second!.status, "pending");
  handles[0]!.started();
  handles[1]!.started();
  await clock.advanceAsync(100);
  assertCode(second, "RUN_TIMEOUT");
  assert.equal(batcher.stats().abandonedRuns, 2);
});

test("a function's run is timed from its dispatch", async () => {
  const { batcher, clock, runs } = heldBatcher({ runTimeoutMs: 100 });
  const [call] = watchAll(batcher, [1]);
  await clock.advanceAsync(90);
  (runs[0]!.context as RunHandle).started();
  await clock.advanceAsync(10);
  assertCode(call, "RUN_TIMEOUT");
});

test("a start that an executor reports after close sets no timer", async () => {
  const clock = manualClock();
  let handle: RunHandle | undefined;
  const executor = {
    slots: 1,
    reportsStart: true,
    ready: () => Promise.resolve(),
    run: (_items: number[], given: RunHandle) => {
      handle = given;
      return new Promise<number[]>(() => undefined);
    },
    close: () => Promise.resolve(),
  };
  const batcher = createBatcher(executor, { clock, policy: greedy(), runTimeoutMs: 100 });
  const call = watch(batcher(1));
  await clock.advanceAsync(1);
  void batcher.close({ graceMs: 0 });
  await clock.advanceAsync(1);
  assertCode(call, "CLOSED");
  handle!.started();
  assert.equal(clock.nextAtMs(), Infinity);
});

for (const how of ["abort", "timeout", "close"])
  test(`a run that its caller has left by ${how} counts, and holds its slot, until it ends`, async () => {
    const { batcher, clock, runs } = heldBatcher<string>({ maxBatchSize: 1, fairKey: (item) => item[0] });
    const controller = new AbortController();
    const call = watch(batcher("a", { signal: controller.signal, timeoutMs: 100 }));
    await clock.settle();
    const next = how === "close" ? undefined : watch(batcher("b"));
    if (how === "abort") controller.abort();
    else if (how === "close") void batcher.close({ graceMs: 100 });
    await clock.advanceAsync(100);
    assert.equal(call.status, "rejected");
    assert.equal(runs[0]!.context.signal.aborted, true);
    assert.deepEqual(batcher.pending, { queued: how === "close" ? 0 : 1, bulk: 0, inFlight: 1 });
    assert.equal(runs.length, 1);
    assert.equal(batcher.stats().tenants!.busiest.find(({ key }) => key === "a")!.dispatched, 1);
    await runs[0]!.finish();
    await runs[1]?.finish();
    assert.deepEqual(batcher.pending, { queued: 0, bulk: 0, inFlight: 0 });
    assert.equal(next?.status, how === "close" ? undefined : "fulfilled");
  });

test("a key stays blocked until the parts of a hung batch, too, have ended", async () => {
  const clock = manualClock();
  let running = 0;
  const atStart: number[][] = [];
  const run = async (items: number[]): Promise<number[]> => {
    atStart.push([running++, ...items]);
    // It hears no signal.
    await new Promise<void>((resolve) => void clock.after(100, resolve));
    running--;
    return items;
  };
  const batcher = createBatcher(run, {
    clock,
    concurrency: 4,
    maxBatchSize: 2,
    orderKey: () => "key",
    runTimeoutMs: 10,
    onBatchError: "bisect",
  });
  const calls = watchAll(batcher, [1, 2, 3]);
  for (let step = 0; step < 400; step++) await clock.advanceAsync(1);
  for (const call of calls) assertCode(call, "RUN_TIMEOUT");
  const first = atStart.findIndex(([, ...items]) => items.includes(3));
  assert.ok(first > 1, "parts have run");
  assert.equal(atStart[first]![0], 0, JSON.stringify(atStart));
});

test("a key stays blocked until its hung run has ended, also where a part of the batch is put back", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({
    concurrency: 4,
    maxBatchSize: 2,
    orderKey: () => "key",
    runTimeoutMs: 10,
    onBatchError: "bisect",
  });
  const calls = watchAll(batcher, [1, 2]);
  await clock.advanceAsync(10);
  assert.deepEqual(batches(), [[1, 2], [1]]);
  runs[1]!.context.putBack();
  await runs[1]!.fail(new Error("429"));
  await clock.settle();
  assert.equal(runs.length, 2, "the run that was given up goes on");
  await runs[0]!.finish();
  await clock.settle();
  assert.deepEqual(batches()[2], [1, 2]);
  await runs[2]!.finish();
  assert.deepEqual(statuses(calls), ["fulfilled", "fulfilled"]);
});
