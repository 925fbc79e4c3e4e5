import assert from "node:assert/strict";
import { test } from "node:test";
import { BatcherError } from "sheaf";
import { CrashedInputs } from "../../../dist/server/models/crashed-inputs.js";

const crash = (items: number): BatcherError => new BatcherError("WORKER_CRASHED", "The worker ended.", { items });

test("only an input that crashed a worker alone is refused", () => {
  const crashed = new CrashedInputs("judge", 60_000);
  crashed.note("of a batch", crash(2));
  crashed.note("an error of its own", new Error("no"));
  assert.equal(crashed.isEmpty, true);
  crashed.note("alone", crash(1));
  assert.match(crashed.refusal("alone")!.message, /has crashed or blocked a worker of judge .* for 60 s/);
  assert.equal(crashed.refusal("another"), undefined);
  assert.deepEqual([crashed.found, crashed.refused], [1, 1]);
});

test("an input whose run alone took too long is refused, one of a batch that did is not", () => {
  const crashed = new CrashedInputs("judge", 60_000);
  const hung = (size: number): BatcherError => new BatcherError("RUN_TIMEOUT", "The run took too long.", { size });
  crashed.note("of a batch", hung(2));
  crashed.note("alone", hung(1));
  assert.deepEqual([crashed.refusal("of a batch"), crashed.refusal("alone")?.code], [undefined, "WORKER_CRASHED"]);
});

test("a refusal is not noted as another crash", () => {
  const crashed = new CrashedInputs("judge", 60_000);
  crashed.note("alone", crash(1));
  crashed.note("alone", crashed.refusal("alone"));
  assert.equal(crashed.found, 1);
});

test("inputs are equal where their keys are", () => {
  const asked: unknown[] = [];
  const keyOf = (item: unknown): string => {
    asked.push(item);
    return String(item).toLowerCase();
  };
  const crashed = new CrashedInputs("judge", 60_000, keyOf);
  assert.equal(crashed.refusal("A"), undefined);
  assert.deepEqual(asked, [], "nothing is computed until an input has crashed a worker");
  crashed.note("A", crash(1));
  assert.notEqual(crashed.refusal("a"), undefined);
});

test("the oldest of more than 1,000 inputs may run again", () => {
  const crashed = new CrashedInputs("judge", 60_000);
  for (let i = 0; i <= 1000; i++) crashed.note(`input ${i}`, crash(1));
  assert.equal(crashed.refusal("input 0"), undefined);
  assert.notEqual(crashed.refusal("input 1"), undefined);
});
