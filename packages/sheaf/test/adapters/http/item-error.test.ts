import assert from "node:assert/strict";
import { test } from "node:test";
import { itemErrorOf } from "../../../dist/adapters/http/item-error.js";
import { BatcherError } from "../../../dist/index.js";

const fullFor = (drainMs: unknown): number | undefined =>
  itemErrorOf(new BatcherError("QUEUE_FULL", "full", { drainMs })).retry_after_ms;

test("a full queue's own estimate says when to come back, from 10 ms to a minute", () => {
  assert.deepEqual([0, 0.2, 1234.5, 1e9].map(fullFor), [10, 10, 1235, 60_000]);
  assert.equal(fullFor(undefined), undefined, "before the cost of a batch is known the endpoint estimates");
});

test("an error's own retryAfterMs is passed on in whole milliseconds, up to two minutes", () => {
  const asked = (retryAfterMs: unknown): unknown =>
    itemErrorOf(Object.assign(new Error("busy"), { retryAfterMs })).retry_after_ms;
  assert.deepEqual([2.5, 1e300, Infinity].map(asked), [3, 120_000, 120_000]);
  assert.deepEqual([-1, Number.NaN, "9"].map(asked), [undefined, undefined, undefined]);
  assert.equal(itemErrorOf(new Error("broken")).retry_after_ms, undefined);
});
