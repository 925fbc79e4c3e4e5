import assert from "node:assert/strict";
import { test } from "node:test";
import { BatcherError, createBatcher, greedy } from "../../dist/index.js";
import { assertCode, heldBatcher, numbers, statuses, values, watch, watchAll } from "../support/rig.js";

test("a lone call is run as a batch of one and gets its result", async () => {
  const { batcher, batches, finishAll } = heldBatcher();
  const call = watch(batcher(7));
  await finishAll();
  assert.deepEqual(batches(), [[7]]);
  assert.equal(call.value, 7);
});

test("results are positional: every caller gets its own", async () => {
  const { batcher, runs, clock } = heldBatcher();
  const calls = watchAll(batcher, [1, 2, 3]);
  await clock.settle();
  await runs[0]!.finish([10, 20, 30]);
  assert.deepEqual(values(calls), [10, 20, 30]);
});

test("an Error in a place rejects that caller only", async () => {
  const { batcher, runs, clock } = heldBatcher();
  const calls = watchAll(batcher, [1, 2, 3]);
  await clock.settle();
  const bad = new TypeError("item 2 is bad");
  await runs[0]!.finish([10, bad, 30]);
  assert.deepEqual(statuses(calls), ["fulfilled", "rejected", "fulfilled"]);
  assert.equal(calls[1]!.reason, bad);
});

test("a place that cannot be read rejects that caller only", async () => {
  const { batcher, runs, clock } = heldBatcher();
  const calls = watchAll(batcher, [1, 2, 3]);
  await clock.settle();
  const unread = new Error("not to be read");
  const get = (): never => {
    throw unread;
  };
  await runs[0]!.finish(Object.defineProperty([10, 20, 30], 1, { get }));
  assert.deepEqual(
    calls.map(({ value, reason }) => value ?? reason),
    [10, unread, 30],
  );
  assert.deepEqual([batcher.stats().items.ok, batcher.stats().items.error], [2, 1]);
});

test("falsy results are results", async () => {
  const { batcher, runs, clock } = heldBatcher<unknown>();
  const calls = watchAll(batcher, [1, 2, 3, 4, 5]);
  await clock.settle();
  await runs[0]!.finish([undefined, null, 0, "", false]);
  assert.deepEqual(statuses(calls), Array(5).fill("fulfilled"));
  assert.deepEqual(values(calls), [undefined, null, 0, "", false]);
});

for (const [what, results, got] of [
  ["too few", [10], 1],
  ["too many", [10, 20, 30, 40], 4],
  ["no", [], 0],
] as const) {
  test(`${what} results reject every caller with RESULT_COUNT and both counts`, async () => {
    const { batcher, runs, clock } = heldBatcher();
    const calls = watchAll(batcher, [1, 2, 3]);
    await clock.settle();
    await runs[0]!.finish(results);
    for (const call of calls) {
      const { message } = assertCode(call, "RESULT_COUNT");
      assert.match(message, /\b3\b/);
      assert.match(message, new RegExp(`\\b${got}\\b`));
    }
  });
}

for (const [what, result] of [
  ["undefined", undefined],
  ["null", null],
  ["a number", 3],
  ["an object without length", { a: 1 }],
  ["a Set", new Set([1])],
  ["a string", "abc"],
  ["a function", (_a: unknown, _b: unknown, _c: unknown) => 0],
] as const) {
  test(`a batch function that gives ${what} instead of an array rejects every caller with a TypeError`, async () => {
    const { batcher, runs, clock } = heldBatcher();
    const calls = watchAll(batcher, [1, 2, 3]);
    await clock.settle();
    await runs[0]!.finish(result as never);
    for (const call of calls) {
      assert.equal(call.status, "rejected");
      assert.ok(call.reason instanceof TypeError, String(call.reason));
    }
  });
}

test("a list of promises is refused by name, early or at the end, and one that fails later does not end the process", async () => {
  const { batcher, runs, clock } = heldBatcher<unknown>();
  const lists = [
    () => [1, Promise.reject(new Error("later"))],
    () => [{ then: () => assert.fail("started") }, 2],
    () => new Map<number, unknown>([[1, 10], [2, Promise.resolve(20)]]), // prettier-ignore
  ];
  for (const [index, list] of lists.entries()) {
    const calls = watchAll(batcher, [1, 2]);
    await clock.settle();
    assert.throws(() => runs[index]!.context.answer(0, Promise.resolve(1)), /the result is a promise; await it first/);
    await runs[index]!.finish(list() as never);
    for (const { reason } of calls) {
      assert.ok(reason instanceof TypeError);
      assert.match(
        reason.message,
        /returned promises in place of results\. Await them inside it, as with Promise\.all/,
      );
    }
  }
});

test("a generator function is refused with what a batch function may return", async () => {
  const batcher = createBatcher(function* (items: number[]) {
    yield* items;
  } as never);
  await assert.rejects(batcher(1 as never), {
    message: /must return an array with one result per item, or a Map of results by key, got an object \(Generator\)$/,
  });
});

test("typed arrays and array-likes are fine results", async () => {
  for (const results of [new Float64Array([1.5, 2.5]), { length: 2, 0: 1.5, 1: 2.5 }]) {
    const { batcher, runs, clock } = heldBatcher();
    const calls = watchAll(batcher, [1, 2]);
    await clock.settle();
    await runs[0]!.finish(results);
    assert.deepEqual(values(calls), [1.5, 2.5]);
  }
});

test("a batch function may give its array synchronously", async () => {
  const double = createBatcher((items: number[]) => items.map((item) => item * 2), { policy: greedy() });
  assert.deepEqual(await Promise.all([double(1), double(2)]), [2, 4]);
});

test("a batch function may give any thenable", async () => {
  const thenable = { then: (resolve: (results: number[]) => void) => resolve([5]) } as PromiseLike<number[]>;
  const five = createBatcher((_: number[]) => thenable, { policy: greedy() });
  assert.equal(await five(1), 5);
});

test("a sync throw equals a rejection: every caller gets the same error object", async () => {
  const boom = new Error("boom");
  const fail = createBatcher(
    (_: number[]): number[] => {
      throw boom;
    },
    { policy: greedy() },
  );
  const outcomes = await Promise.allSettled([fail(1), fail(2), fail(3)]);
  for (const outcome of outcomes) assert.equal(outcome.status === "rejected" && outcome.reason, boom);
});

test("a rejected run gives every caller of the batch the same error object and the next batch is run", async () => {
  const { batcher, runs, clock } = heldBatcher();
  const calls = watchAll(batcher, [1, 2]);
  await clock.settle();
  const next = watch(batcher(3));
  const boom = new Error("boom");
  await runs[0]!.fail(boom);
  for (const call of calls) assert.equal(call.reason, boom);
  await runs[1]!.finish();
  assert.equal(next.value, 3);
});

test("whatever a batch function throws reaches its callers as it is", async () => {
  for (const thrown of [undefined, null, "no", 0, { name: "Plain", message: "object" }]) {
    const { batcher, runs, clock } = heldBatcher();
    const call = watch(batcher(1));
    await clock.settle();
    await runs[0]!.fail(thrown);
    assert.equal(call.status, "rejected");
    assert.equal(call.reason, thrown);
  }
});

test("a BatcherError of the batch function itself is passed on unchanged", async () => {
  const { batcher, runs, clock } = heldBatcher();
  const call = watch(batcher(1));
  await clock.settle();
  const crashed = new BatcherError("WORKER_CRASHED", "Worker 3 crashed.");
  await runs[0]!.fail(crashed);
  assert.equal(call.reason, crashed);
});

test("a batch function that empties or reorders its items array does no harm", async () => {
  const batcher = createBatcher(
    (items: number[]) => {
      const results = items.map((item) => item * 2);
      items.reverse();
      items.length = 1;
      return results;
    },
    { policy: greedy() },
  );
  assert.deepEqual(await Promise.all([1, 2, 3].map((item) => batcher(item))), [2, 4, 6]);
});

test("a batch function may keep its items array: the next batch gets another one", async () => {
  const kept: number[][] = [];
  const batcher = createBatcher(
    (items: number[]) => {
      kept.push(items);
      return items;
    },
    { policy: greedy(), maxBatchSize: 2 },
  );
  await Promise.all(numbers(6).map((item) => batcher(item)));
  assert.deepEqual(kept, [
    [0, 1],
    [2, 3],
    [4, 5],
  ]);
});

test("items that are errors, promises, undefined or functions travel untouched", async () => {
  const odd: unknown[] = [new Error("an item"), Promise.resolve(1), undefined, null, () => 1, Symbol("s")];
  const seen: unknown[] = [];
  const batcher = createBatcher(
    (items: unknown[]) => {
      seen.push(...items);
      return items.map((_, index) => index);
    },
    { policy: greedy() },
  );
  assert.deepEqual(await Promise.all(odd.map((item) => batcher(item))), [0, 1, 2, 3, 4, 5]);
  odd.forEach((item, index) => assert.equal(seen[index], item));
});

test("the context describes the batch: id from 1 on, size, attempt 1, a live signal", async () => {
  const { batcher, runs, clock, finishAll } = heldBatcher({ maxBatchSize: 2 });
  watchAll(batcher, [1, 2, 3]);
  await clock.settle();
  await finishAll();
  assert.deepEqual(
    runs.map(({ context }) => [context.batchId, context.size, context.attempt, context.signal.aborted]),
    [
      [1, 2, 1, false],
      [2, 1, 1, false],
    ],
  );
});
