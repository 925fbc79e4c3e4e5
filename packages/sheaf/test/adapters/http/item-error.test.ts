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

test("an error's own retryAfterMs is passed on as it is, in whole milliseconds", () => {
  assert.equal(itemErrorOf(Object.assign(new Error("busy"), { retryAfterMs: 2.5 })).retry_after_ms, 3);
  assert.equal(itemErrorOf(new Error("broken")).retry_after_ms, undefined);
});
