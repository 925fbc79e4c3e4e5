import assert from "node:assert/strict";
import { test } from "node:test";
import type { BatchRecord } from "../../dist/index.js";
import { heldBatcher, watch, watchAll } from "../support/rig.js";

const tagsOf = (records: readonly BatchRecord[]): unknown[] => records.map(({ tags }) => tags);

test("a batch's record lists the tags of its calls, single ones and lists, in order", async () => {
  const { batcher, finishAll } = heldBatcher({ maxBatchSize: 4 });
  const records: BatchRecord[] = [];
  batcher.subscribe((record) => records.push(record));
  watchAll(batcher, [0]);
  watch(batcher(1, { tag: "a" }));
  watchAll(batcher, [2]);
  watch(batcher.many([3, 4, 5], { tag: "b" }));
  await finishAll();
  watchAll(batcher, [6]);
  await finishAll();
  assert.deepEqual(tagsOf(records), [["a", "b"], ["b", "b"], undefined]);
});

test("tags follow their items through lanes, groups, weights and a wait for room", async () => {
  const { batcher, finishAll } = heldBatcher({
    maxBatchSize: 4,
    maxQueueSize: 6,
    onQueueFull: "wait",
    groupKey: (item) => item % 2,
    weigh: () => 1,
    maxBatchWeight: 2,
  });
  const tagsOfItem = new Map<number, unknown>();
  const records: BatchRecord[] = [];
  batcher.subscribe((record) => records.push(record));
  const priorities = ["bulk", "interactive", "immediate"] as const;
  const calls = Array.from({ length: 12 }, (_, item) => {
    tagsOfItem.set(item, { item });
    return watch(batcher(item, { tag: tagsOfItem.get(item), priority: priorities[item % 3] }));
  });
  await finishAll();
  assert.ok(calls.every(({ status }) => status === "fulfilled"));
  for (const { tags, group } of records) assert.ok(tags!.every((tag) => (tag as { item: number }).item % 2 === group));
  assert.equal(new Set(tagsOf(records).flat()).size, 12);
});

test("a duplicate has a tag in the batch too, and a successor's replaces that of the caller who left", async () => {
  const { batcher, runs, clock } = heldBatcher({ dedupeKey: (item) => item });
  const records: BatchRecord[] = [];
  batcher.subscribe((record) => records.push(record));
  watchAll(batcher, [0]);
  await clock.settle();
  const leaving = new AbortController();
  watch(batcher(7, { tag: "first", signal: leaving.signal }));
  watch(batcher(7, { tag: "heir" }));
  watch(batcher(7, { tag: "third" }));
  leaving.abort();
  await runs[0]!.finish();
  await runs[1]!.finish();
  assert.deepEqual(tagsOf(records), [undefined, ["heir", "third"]]);
});
