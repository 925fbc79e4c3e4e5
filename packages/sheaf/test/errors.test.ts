import assert from "node:assert/strict";
import { test } from "node:test";
import { BatcherError } from "../dist/index.js";

test("a BatcherError carries its code, its numbers and its cause", () => {
  const cause = new Error("socket hang up");
  const error = new BatcherError("WORKER_CRASHED", "Worker 3 crashed.", { worker: 3 }, cause);
  assert.equal(error.code, "WORKER_CRASHED");
  assert.deepEqual(error.details, { worker: 3 });
  assert.equal(error.cause, cause);
  assert.ok(error instanceof Error);
});
