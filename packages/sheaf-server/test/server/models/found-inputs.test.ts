import assert from "node:assert/strict";
import { test } from "node:test";
import { BatcherError } from "sheaf";
import { FoundInputs } from "../../../dist/server/models/found-inputs.js";

const crash = new BatcherError("WORKER_CRASHED", "The worker ended.", { items: 1 });

test("an input that crashed a worker or ran too long is refused", () => {
  const inputs = new FoundInputs("judge");
  assert.equal(inputs.isEmpty, true);
  inputs.add("crashes", crash);
  inputs.add("hangs", new BatcherError("RUN_TIMEOUT", "The run took too long.", { size: 1 }));
  assert.match(inputs.refusal("crashes")!.message, /has crashed or blocked a worker of judge .* for 600 s/);
  assert.equal((inputs.refusal("hangs") as BatcherError).details["refusedForMs"], 600_000);
  assert.equal(inputs.refusal("another"), undefined);
  assert.deepEqual([inputs.lost, inputs.refused], [2, 2]);
});

test("an input that made its run throw gets its error again, and no worker was lost", () => {
  const inputs = new FoundInputs("judge");
  const error = new RangeError("too deep");
  inputs.add("deep", error);
  assert.equal(inputs.refusal("deep"), error);
  assert.deepEqual([inputs.lost, inputs.refused], [0, 0]);
});

test("inputs are equal where their keys are", () => {
  const asked: unknown[] = [];
  const keyOf = (item: unknown): string => {
    asked.push(item);
    return String(item).toLowerCase();
  };
  const inputs = new FoundInputs("judge", keyOf);
  assert.equal(inputs.refusal("A"), undefined);
  assert.deepEqual(asked, [], "nothing is computed until an input has broken a run");
  inputs.add("A", crash);
  assert.notEqual(inputs.refusal("a"), undefined);
});

test("the oldest of more than 1,000 inputs may run again", () => {
  const inputs = new FoundInputs("judge");
  for (let i = 0; i <= 1000; i++) inputs.add(`input ${i}`, crash);
  assert.equal(inputs.refusal("input 0"), undefined);
  assert.notEqual(inputs.refusal("input 1"), undefined);
});
