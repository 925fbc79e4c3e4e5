import assert from "node:assert/strict";
import { test } from "node:test";
import { type BatchContext, type BatchRecord, createBatcher } from "../../dist/index.js";
import { runHandle } from "../../dist/executors.js";
import { assertCode, heldBatcher, numbers, statuses, values, watch, watchAll } from "../support/rig.js";

test("an answer reaches its caller at once; the others wait for the end of the run", async () => {
  const { batcher, clock, runs } = heldBatcher();
  const calls = watchAll(batcher, [1, 2, 3]);
  await clock.settle();
  runs[0]!.context.answer(1, 20);
  await clock.settle();
  assert.deepEqual(statuses(calls), ["pending", "fulfilled", "pending"]);
  await runs[0]!.finish([10, 99, 30]);
  assert.deepEqual(values(calls), [10, 20, 30], "the array stays as long as the batch, an answered place is ignored");
});

test("an array that is not as long as the batch fails the unanswered, also where it could be theirs alone", async () => {
  for (const answered of [[0], [1, 3]]) {
    const { batcher, clock, runs } = heldBatcher();
    const calls = watchAll(batcher, [1, 2, 3, 4]);
    await clock.settle();
    for (const index of answered) runs[0]!.context.answer(index, 10);
    await runs[0]!.finish(numbers(4 - answered.length));
    for (const [index, call] of calls.entries()) {
      if (answered.includes(index)) assert.equal(call.value, 10);
      else assertCode(call, "RESULT_COUNT");
    }
  }
});

test("a function that answered all may return nothing", async () => {
  for (const result of [undefined, null, [], [7, 7], 3]) {
    const { batcher, clock, runs } = heldBatcher();
    const calls = watchAll(batcher, [1, 2]);
    await clock.settle();
    const { answer } = runs[0]!.context;
    answer(0, 10);
    answer(1, 20);
    await runs[0]!.finish(result as never);
    assert.deepEqual(values(calls), [10, 20]);
  }
});

test("a wrong number of results reaches the unanswered only", async () => {
  const { batcher, clock, runs } = heldBatcher();
  const calls = watchAll(batcher, [1, 2, 3, 4]);
  await clock.settle();
  runs[0]!.context.answer(0, 10);
  await runs[0]!.finish([20]);
  assert.equal(calls[0]!.value, 10);
  for (const call of calls.slice(1)) assert.deepEqual(assertCode(call, "RESULT_COUNT").details, { expected: 4, received: 1 }); // prettier-ignore
});

test("a function that returns nothing although some are unanswered fails those with a TypeError", async () => {
  const { batcher, clock, runs } = heldBatcher();
  const calls = watchAll(batcher, [1, 2]);
  await clock.settle();
  runs[0]!.context.answer(1, 20);
  await runs[0]!.finish(undefined as never);
  assert.ok(calls[0]!.reason instanceof TypeError);
  assert.equal(calls[1]!.value, 20);
});

test("an Error as an answer rejects that caller", async () => {
  const { batcher, clock, runs } = heldBatcher();
  const calls = watchAll(batcher, [1, 2]);
  await clock.settle();
  const bad = new Error("1 is bad");
  runs[0]!.context.answer(0, bad);
  await clock.settle();
  assert.equal(calls[0]!.reason, bad);
  await runs[0]!.finish();
  assert.equal(calls[1]!.value, 2);
});

test("an index outside of the run is a RangeError", async () => {
  const { batcher, clock, runs } = heldBatcher();
  watchAll(batcher, [1, 2]);
  await clock.settle();
  const { answer } = runs[0]!.context;
  for (const index of [-1, 2, 0.5, Number.NaN, "0", undefined] as number[]) {
    assert.throws(() => answer(index, 1), { name: "RangeError", message: /index must be an integer, 0 to 1, got/ });
  }
  await runs[0]!.finish();
});

test("the first answer counts; one after the end of the run has no effect", async () => {
  const { batcher, clock, runs } = heldBatcher();
  const calls = watchAll(batcher, [1, 2]);
  await clock.settle();
  const { answer } = runs[0]!.context;
  answer(0, 10);
  answer(0, 11);
  await runs[0]!.finish();
  answer(1, 22);
  await clock.settle();
  assert.deepEqual(values(calls), [10, 2]);
  assert.equal(batcher.stats().items.ok, 2);
});

test("a later error reaches the unanswered only", async () => {
  const { batcher, clock, runs } = heldBatcher();
  const calls = watchAll(batcher, [1, 2, 3]);
  await clock.settle();
  runs[0]!.context.answer(1, 20);
  const error = new Error("the stream broke");
  await runs[0]!.fail(error);
  assert.deepEqual(statuses(calls), ["rejected", "fulfilled", "rejected"]);
  assert.equal(calls[2]!.reason, error);
});

test("a run that is given up fails the unanswered only, and its later answers have no effect", async () => {
  const { batcher, clock, runs } = heldBatcher({ runTimeoutMs: 10 });
  const calls = watchAll(batcher, [1, 2]);
  await clock.settle();
  const { answer, signal } = runs[0]!.context;
  signal.addEventListener("abort", () => answer(1, 22));
  answer(0, 10);
  await clock.advanceAsync(10);
  assert.equal(calls[0]!.value, 10);
  assertCode(calls[1], "RUN_TIMEOUT");
});

test("answered items do not run again in a bisection", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({ onBatchError: "bisect" });
  const calls = watchAll(batcher, [1, 2, 3, 4]);
  await clock.settle();
  const first = runs[0]!.context;
  first.answer(0, 10);
  first.answer(2, 30);
  await runs[0]!.fail(new Error("one is bad"));
  assert.deepEqual(batches(), [[1, 2, 3, 4], [2]]);
  first.answer(3, 99); // its own run has ended
  runs[1]!.context.answer(0, 20);
  await runs[1]!.finish(undefined as never);
  assert.deepEqual(batches().slice(2), [[4]]);
  runs[1]!.context.answer(0, 99);
  await runs[2]!.fail(new Error("4 is bad"));
  assert.deepEqual(values(calls), [10, 20, 30, undefined]);
  assert.match(String(calls[3]!.reason), /4 is bad/);
});

test("runOne may answer its item", async () => {
  const { batcher, clock, runs } = heldBatcher({
    onBatchError: "bisect",
    runOne: (item, { answer }) => {
      answer(0, 10 * item);
      return -1;
    },
  });
  const calls = watchAll(batcher, [1, 2]);
  await clock.settle();
  await runs[0]!.fail(new Error("one is bad"));
  assert.deepEqual(values(calls), [10, 20]);
});

test("results by key leave the answered alone", async () => {
  const { batcher, clock, runs } = heldBatcher({ onMissing: "error" });
  const calls = watchAll(batcher, [1, 2, 3]);
  await clock.settle();
  runs[0]!.context.answer(0, 10);
  await runs[0]!.finish(new Map([[2, 20]]) as never);
  assert.deepEqual(values(calls), [10, 20, undefined]);
  assertCode(calls[2], "MISSING_RESULT");
});

test("the slot and the order key stay taken until the run ends", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({ orderKey: () => "one", concurrency: 2 });
  watchAll(batcher, [1]);
  await clock.settle();
  runs[0]!.context.answer(0, 10);
  watchAll(batcher, [2]);
  await clock.settle();
  assert.deepEqual(batches(), [[1]]);
  assert.equal(batcher.stats().inFlight, 1);
  await runs[0]!.finish(undefined as never);
  assert.deepEqual(batches(), [[1], [2]]);
});

test("flush and drain take the answered for settled, close waits for the run", async () => {
  const { batcher, clock, runs } = heldBatcher();
  watchAll(batcher, [1]);
  const flushed = watch(batcher.flush());
  await clock.settle();
  const drained = watch(batcher.drain());
  runs[0]!.context.answer(0, 10);
  await clock.settle();
  assert.deepEqual(statuses([flushed, drained]), ["fulfilled", "fulfilled"]);
  const closed = watch(batcher.close());
  await clock.settle();
  assert.equal(closed.status, "pending");
  await runs[0]!.finish(undefined as never);
  assert.equal(closed.status, "fulfilled");
});

test("close does not wait for an answered run that was given up or cut off", async () => {
  for (const how of ["runTimeoutMs", "graceMs"] as const) {
    const { batcher, clock, runs } = heldBatcher(how === "runTimeoutMs" ? { runTimeoutMs: 10 } : {});
    watchAll(batcher, [1]);
    await clock.settle();
    runs[0]!.context.answer(0, 10);
    const closed = watch(batcher.close(how === "graceMs" ? { graceMs: 10 } : {}));
    await clock.settle();
    assert.equal(closed.status, "pending");
    await clock.advanceAsync(10);
    assert.equal(closed.status, "fulfilled", how);
    assert.equal(runs[0]!.context.signal.aborted, true);
  }
});

test("the signal aborts when the last unanswered caller leaves, never because all were answered", async () => {
  const { batcher, clock, runs } = heldBatcher();
  const controller = new AbortController();
  watch(batcher(1));
  watch(batcher(2, { signal: controller.signal }));
  await clock.settle();
  runs[0]!.context.answer(0, 10);
  assert.equal(runs[0]!.context.signal.aborted, false);
  controller.abort();
  assert.equal(runs[0]!.context.signal.aborted, true);

  await runs[0]!.finish();
  watch(batcher(3));
  await clock.settle();
  runs[1]!.context.answer(0, 30);
  await clock.settle();
  assert.equal(runs[1]!.context.signal.aborted, false);
});

test("an answer reaches everyone who shares the item, and ends the joining of its run", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({
    dedupeKey: (item) => item,
    dedupe: "running",
    concurrency: 2,
  });
  const calls = watchAll(batcher, [1, 2, 1]);
  await clock.settle();
  calls.push(watch(batcher(1)));
  runs[0]!.context.answer(0, 10);
  await clock.settle();
  assert.deepEqual(values(calls), [10, undefined, 10, 10]);
  watch(batcher(1));
  await clock.settle();
  assert.deepEqual(batches(), [[1, 2], [1]]);
});

test("an answered item has a latency of its own, and detailed tells how long it ran", async () => {
  const { batcher, clock, runs } = heldBatcher();
  const records: BatchRecord[] = [];
  batcher.subscribe((record) => records.push(record));
  const [early, late] = [watch(batcher.detailed(1)), watch(batcher.detailed(2))];
  await clock.advanceAsync(5);
  runs[0]!.context.answer(0, 10);
  await clock.advanceAsync(95);
  await runs[0]!.finish();
  assert.deepEqual([early.value!.runMs, late.value!.runMs, records[0]!.runMs], [5, 100, 100]);
  const { p50, max } = batcher.stats().latencyMs;
  assert.ok(p50 < 10 && max > 90, `${p50} and ${max}`);
});

test("an Error in an item's place that asks for a pause is that item's: it holds nothing back", async () => {
  const busy = (): Error => Object.assign(new Error("slow down"), { status: 429, retryAfterMs: 1e9 });
  const { batcher, clock, runs, batches } = heldBatcher({ concurrency: 2, maxBatchSize: 2 });
  const [early, own] = watchAll(batcher, [1, 2]);
  await clock.settle();
  runs[0]!.context.answer(0, busy());
  await runs[0]!.finish([1, busy()]);
  assert.deepEqual([early!.status, own!.status], ["rejected", "rejected"]);
  watchAll(batcher, [3]);
  await clock.advanceAsync(1);
  assert.deepEqual(batches(), [[1, 2], [3]]);
});

test("a batch function that is run by hand may answer too", async () => {
  const seen: (number[] | undefined)[] = [];
  const run = (items: string[], context: BatchContext): string[] => {
    context.answer(1, "b");
    return items.slice(1);
  };
  const handle = runHandle({ size: 2 });
  seen.push(handle.unanswered());
  run(["a", "b"], handle);
  seen.push(handle.unanswered(), handle.part([1]).unanswered(), handle.part([0, 1]).unanswered());
  assert.deepEqual(seen, [undefined, [0], [], [0]]);
});

test("with its types given, a function that answers all needs no return", async () => {
  const upper = createBatcher<string, string>(async (texts, { answer }) => {
    for (const [index, text] of texts.entries()) answer(index, text.toUpperCase());
  });
  assert.deepEqual(await upper.many(["a", "b"]), ["A", "B"]);
});
