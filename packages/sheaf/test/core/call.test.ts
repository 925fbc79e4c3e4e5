import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher, greedy } from "../../dist/index.js";
import { batcherChecks } from "../../dist/core/contract/settings.js";
import { checkFunction } from "../../dist/shared/checks.js";
import { heldBatcher, numbers, timedBatcher, watch } from "../support/rig.js";

const echo = (items: number[]): number[] => items;

test("Promise.all(items.map(batcher)) works: a second argument that is not an object is ignored", async () => {
  const batcher = createBatcher((items: number[]) => items.map((item) => item * 2), { policy: greedy() });
  assert.deepEqual(await Promise.all([1, 2, 3].map(batcher)), [2, 4, 6]);
  for (const ignored of [undefined, null, 3, "bulk", true]) assert.equal(await batcher(1, ignored as never), 2);
});

test("a batcher needs no options at all", async () => {
  const batcher = createBatcher(echo);
  assert.equal(await batcher(5), 5);
  assert.deepEqual(await batcher.many([1, 2]), [1, 2]);
  await batcher.close();
});

test("options that are undefined are as good as absent", async () => {
  const batcher = createBatcher(echo, {
    maxBatchSize: undefined,
    maxWaitMs: undefined,
    policy: undefined,
    name: undefined,
  });
  assert.equal(await batcher(5, { signal: undefined, timeoutMs: undefined, priority: undefined }), 5);
});

test("all methods can be destructured", async () => {
  const { batcher, clock } = timedBatcher();
  const { many, settle, map, flush, drain, close, ready, stats, subscribe } = batcher;
  const unsubscribe = subscribe(() => {});
  const results = watch(Promise.all([many([1]), settle([2]), flush(), drain(), ready()]));
  const mapped: number[] = [];
  const mapping = watch(
    (async () => {
      for await (const result of map([3])) mapped.push(result);
    })(),
  );
  await clock.advanceAsync(1_000);
  assert.equal(results.status, "fulfilled");
  assert.equal(mapping.status, "fulfilled");
  assert.deepEqual(mapped, [3]);
  assert.equal(stats().items.ok, 3);
  unsubscribe();
  const closed = watch(close());
  await clock.advanceAsync(10);
  assert.equal(closed.status, "fulfilled");
});

test("the name is a property of the batcher, and `batcher` by default", () => {
  assert.equal(createBatcher(echo, { name: "embed" }).name, "embed");
  assert.equal(createBatcher(echo).name, "batcher");
  assert.equal(createBatcher(echo, { name: "embed" }).stats().name, "embed");
});

test("maxBatchSize is 32 by default", async () => {
  const { batcher, finishAll, batches } = heldBatcher();
  void watch(Promise.all(numbers(40).map((item) => batcher(item))));
  await finishAll();
  assert.deepEqual(
    batches().map((batch) => batch.length),
    [32, 8],
  );
});

test("a function has 4 batches in flight by default", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 1, concurrency: undefined });
  void watch(Promise.all(numbers(6).map((item) => batcher(item))));
  await clock.settle();
  assert.equal(runs.length, 4);
});

test("maxBatchSize may be Infinity", async () => {
  const { batcher, finishAll, batches } = heldBatcher({ maxBatchSize: Infinity });
  void watch(Promise.all(numbers(5_000).map((item) => batcher(item))));
  await finishAll();
  assert.equal(batches()[0]!.length, 5_000);
});

test("items of one lane leave in the order in which they came", async () => {
  const { batcher, finishAll, batches } = heldBatcher({ maxBatchSize: 7 });
  void watch(Promise.all(numbers(100).map((item) => batcher(item))));
  await finishAll();
  assert.deepEqual(batches().flat(), numbers(100));
});

test("never more than `concurrency` batches are in flight", async () => {
  const { batcher, clock, runs, finishAll } = heldBatcher({ maxBatchSize: 2, concurrency: 3 });
  void watch(Promise.all(numbers(20).map((item) => batcher(item))));
  await clock.settle();
  assert.equal(runs.length, 3);
  assert.equal(batcher.stats().inFlight, 3);
  await runs[1]!.finish();
  assert.equal(runs.length, 4);
  await finishAll();
  assert.equal(runs.length, 10);
});

test("a method taken off its object sees no `this` of ours: the batch function, and every option that is a function", async () => {
  const seen = new Map<string, unknown>();
  const watched = <Args extends unknown[], Result>(name: string, answer: (...args: Args) => Result) =>
    function (this: unknown, ...args: Args): Result {
      seen.set(name, this);
      return answer(...args);
    };
  const run = watched("batch function", (numbers: readonly number[]) => {
    if (numbers.includes(3)) throw new Error("3 is bad");
    return new Map(numbers.map((number) => [number, number]));
  });
  const keys = {
    groupKey: watched("groupKey", () => 1),
    fairKey: watched("fairKey", (number: number) => number % 2),
    shareOf: watched("shareOf", () => 1),
    dedupeKey: watched("dedupeKey", (number: number) => number),
    resultKey: watched("resultKey", (number: number) => number),
    weigh: watched("weigh", () => 1),
    orderKey: watched("orderKey", (number: number) => number),
  };
  const isolating = {
    onBatchError: "bisect",
    runOne: watched("runOne", (number: number) => number),
    shouldBisect: watched("shouldBisect", () => true),
  } as const;
  await createBatcher<number, number | undefined>(run, { ...keys, ...isolating }).many([1, 2, 3]);
  const functions = Object.entries(batcherChecks).flatMap(([name, isRight]) =>
    isRight === checkFunction ? [name] : [],
  );
  assert.deepEqual([...seen.keys()].sort(), ["batch function", ...functions].sort(), "none is left out");
  assert.deepEqual([...new Set(seen.values())], [undefined]);

  // A key alone goes another way.
  seen.clear();
  const alone = createBatcher<number, number>((numbers) => numbers, { fairKey: keys.fairKey });
  alone.subscribe(watched("subscriber", () => undefined));
  await alone(1);
  assert.deepEqual(Object.fromEntries(seen), { fairKey: undefined, subscriber: undefined });
});
