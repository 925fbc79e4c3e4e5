import assert from "node:assert/strict";
import { test } from "node:test";
import { fixedWindow } from "../../dist/index.js";
import { heldBatcher, statuses, watchAll } from "../support/rig.js";

const letter = (item: string): string => item[0]!;

test("items of different groups never share a batch", async () => {
  const { batcher, finishAll, batches } = heldBatcher<string>({ groupKey: letter });
  const calls = watchAll(batcher, ["a1", "b1", "a2", "c1", "b2"]);
  await finishAll();
  assert.deepEqual(statuses(calls), Array(5).fill("fulfilled"));
  for (const batch of batches()) assert.equal(new Set(batch.map(letter)).size, 1);
  assert.deepEqual(batches(), [["a1", "a2"], ["b1", "b2"], ["c1"]]);
});

test("the least recently served group goes first", async () => {
  const { batcher, finishAll, batches } = heldBatcher<string>({ groupKey: letter, maxBatchSize: 1 });
  watchAll(batcher, ["a1", "a2", "a3", "b1", "c1", "b2"]);
  await finishAll();
  assert.deepEqual(batches().flat(), ["a1", "b1", "c1", "a2", "b2", "a3"]);
});

test("a busy group does not starve a quiet one", async () => {
  const { batcher, clock, runs } = heldBatcher<string>({ groupKey: letter, maxBatchSize: 1 });
  watchAll(
    batcher,
    Array.from({ length: 50 }, (_, index) => `a${index}`),
  );
  await clock.settle();
  watchAll(batcher, ["b0"]);
  for (let run = 0; run < 3; run++) await runs[run]?.finish();
  assert.ok(runs.slice(0, 4).some(({ items }) => items[0] === "b0"));
});

test("a stream of new groups does not starve one that was served", async () => {
  const { batcher, clock, runs } = heldBatcher<string>({ groupKey: (item) => item, maxBatchSize: 1 });
  watchAll(batcher, ["old", "old"]);
  await clock.settle();
  for (let step = 0; step < 60; step++) {
    watchAll(batcher, [`new ${step} left`, `new ${step} right`]);
    await runs[step]!.finish();
  }
  const second = runs.findIndex(({ items }, index) => index > 0 && items[0] === "old");
  assert.ok(second > 1 && second <= 40, `served again as batch ${second}`);
});

test("undefined is a group too, and keys are compared as in a Map", async () => {
  const key = {};
  const groups = new Map<string, unknown>([
    ["n1", Number.NaN],
    ["n2", Number.NaN],
    ["o1", key],
    ["o2", key],
    ["p1", {}],
    ["u1", undefined],
    ["u2", undefined],
    ["z1", 0],
    ["z2", -0],
    ["s1", "0"],
  ]);
  const { batcher, finishAll, batches } = heldBatcher<string>({ groupKey: (item) => groups.get(item) });
  watchAll(batcher, groups.keys());
  await finishAll();
  assert.deepEqual(
    batches()
      .map((batch) => batch.join(" "))
      .sort(),
    ["n1 n2", "o1 o2", "p1", "s1", "u1 u2", "z1 z2"],
  );
});

test("groupKey is called once an item, on arrival", async () => {
  const asked: string[] = [];
  const { batcher, finishAll } = heldBatcher<string>({
    groupKey: (item) => {
      asked.push(item);
      return letter(item);
    },
    maxBatchSize: 1,
  });
  watchAll(batcher, ["a1", "b1", "a2"]);
  assert.deepEqual(asked, ["a1", "b1", "a2"]);
  await finishAll();
  assert.equal(asked.length, 3);
});

test("a throwing groupKey fails its own call only", async () => {
  const boom = new Error("no group");
  const { batcher, finishAll } = heldBatcher<string>({
    groupKey: (item) => {
      if (item === "b1") throw boom;
      return letter(item);
    },
  });
  const calls = watchAll(batcher, ["a1", "b1", "a2"]);
  await finishAll();
  assert.deepEqual(statuses(calls), ["fulfilled", "rejected", "fulfilled"]);
  assert.equal(calls[1]!.reason, boom);
});

test("a window holds every group for maxWaitMs from its own oldest item", async () => {
  const { batcher, clock, runs } = heldBatcher<string>({
    groupKey: letter,
    policy: fixedWindow(),
    maxWaitMs: 10,
    concurrency: 4,
  });
  const startedAtMs = clock.now();
  watchAll(batcher, ["a1"]);
  await clock.advanceAsync(4);
  watchAll(batcher, ["b1"]);
  await clock.advanceAsync(4);
  watchAll(batcher, ["a2", "b2"]);
  await clock.advanceAsync(100);
  assert.deepEqual(
    runs.map(({ items, startedAtMs: atMs }) => [...items, atMs - startedAtMs]),
    [
      ["a1", "a2", 10],
      ["b1", "b2", 14],
    ],
  );
});

test("a full group goes at once though another is still filling", async () => {
  const { batcher, clock, batches } = heldBatcher<string>({
    groupKey: letter,
    policy: fixedWindow(),
    maxWaitMs: 10,
    maxBatchSize: 2,
    concurrency: 4,
  });
  watchAll(batcher, ["a1", "b1", "b2"]);
  await clock.settle();
  assert.deepEqual(batches(), [["b1", "b2"]]);
});

test("an immediate item brings its own group only", async () => {
  const { batcher, clock, batches } = heldBatcher<string>({
    groupKey: letter,
    policy: fixedWindow(),
    maxWaitMs: 1_000,
  });
  watchAll(batcher, ["a1", "b1"]);
  watchAll(batcher, ["b2"], { priority: "immediate" });
  await clock.settle();
  assert.deepEqual(batches(), [["b2", "b1"]]);
});

test("a record carries the group of its batch", async () => {
  const { batcher, finishAll } = heldBatcher<string>({ groupKey: letter });
  const groups: unknown[] = [];
  batcher.subscribe(({ group }) => groups.push(group));
  watchAll(batcher, ["a1", "b1"]);
  await finishAll();
  assert.deepEqual(groups, ["a", "b"]);
});

test("lanes hold inside a group", async () => {
  const { batcher, finishAll, batches } = heldBatcher<string>({ groupKey: letter, maxBatchSize: 2 });
  watchAll(batcher, ["a1", "a2"], { priority: "bulk" });
  watchAll(batcher, ["a3"]);
  await finishAll();
  assert.deepEqual(batches(), [["a3", "a1"], ["a2"]]);
});
