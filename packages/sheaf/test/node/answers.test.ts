import assert from "node:assert/strict";
import { test } from "node:test";
import { type Batcher, BatcherError, type BatcherOptions, createBatcher } from "../../dist/index.js";
import { runHandle } from "../../dist/executors.js";
import { workerProcess, workerThread, type WorkerOptions } from "../../dist/node/index.js";
import { endsOf, watch } from "../support/rig.js";
import type answering from "./answering-worker.js";
import type { Step } from "./answering-worker.js";
import { impatient } from "./probe.js";

const url = new URL("./answering-worker.js", import.meta.url);
type Call = Batcher<Step, string | Float32Array>;

for (const [kind, open] of [
  ["thread", workerThread<typeof answering>],
  ["process", workerProcess<typeof answering>],
] as const) {
  const withWorker = async (
    run: (call: Call) => Promise<void>,
    options: WorkerOptions = {},
    batching: BatcherOptions<Step, string | Float32Array> = {},
  ): Promise<void> => {
    const call = createBatcher(open(url, { ...options, clock: impatient }), batching);
    await call.ready();
    await run(call);
    await call.close();
  };
  const outcomes = async (call: Call, steps: Step[]): Promise<unknown[]> => endsOf(await call.settle(steps));

  test(`an answer of a worker ${kind} reaches its caller while the run goes on`, () =>
    withWorker(async (call) => {
      const controller = new AbortController();
      const [early, bad] = [call("answer"), call("fail")];
      const late = watch(call("until-abort", { signal: controller.signal }));
      assert.equal(await early, "3 items, attempt 1");
      await assert.rejects(bad, { name: "RangeError", message: "it is bad", code: "E_BAD" });
      assert.equal(late.status, "pending");
      controller.abort();
    }));

  test(`what a worker ${kind} has answered does not run again after a crash, nor count for its results`, () =>
    withWorker(async (call) => {
      assert.deepEqual(await outcomes(call, ["answer", "return", "exit-once", "return"]), [
        "4 items, attempt 1",
        ...Array(3).fill("3 items, attempt 2"),
      ]);
    }));

  test(`an item that crashes its worker ${kind} is found among the unanswered`, () =>
    withWorker(async (call) => {
      const [first, crashing, last] = await outcomes(call, ["answer", "exit", "return"]);
      assert.equal(first, "3 items, attempt 1");
      assert.ok(crashing instanceof BatcherError);
      assert.equal(crashing.code, "WORKER_CRASHED");
      assert.match(String(last), /^1 items/);
    }));

  test(`a crash of a worker ${kind} that fails its batch reaches the unanswered only`, () =>
    withWorker(
      async (call) => {
        const [first, second] = await outcomes(call, ["answer", "exit"]);
        assert.equal(first, "2 items, attempt 1");
        assert.equal((second as BatcherError).code, "WORKER_CRASHED");
      },
      {},
      { onBatchError: "fail" },
    ));

  test(`a worker ${kind} that throws after an answer fails the others, and a bisection runs those only`, () =>
    withWorker(
      async (call) => {
        const [first, bad, last] = await outcomes(call, ["answer", "throw", "return"]);
        assert.deepEqual([first, last], ["3 items, attempt 1", "1 items, attempt 1"]);
        assert.match(String(bad), /thrown later/);
      },
      {},
      { onBatchError: "bisect" },
    ));

  test(`a worker ${kind} that answers all may return nothing; the first answer counts, and none after the run`, () =>
    withWorker(async (call) => {
      assert.deepEqual(await outcomes(call, ["answer", "twice"]), ["2 items, attempt 1", "first"]);
      assert.deepEqual(await outcomes(call, ["afterwards"]), ["1 items, attempt 1"]);
      assert.deepEqual(await outcomes(call, ["answer"]), ["1 items, attempt 1"]);
    }));

  test(`a worker ${kind} gets an error for an index out of range, and for a result that cannot be sent`, () =>
    withWorker(async (call) => {
      const [beyond, uncloneable] = await outcomes(call, ["beyond", "uncloneable"]);
      assert.match(String(beyond), /RangeError: .*index must be an integer, 0 to 1, got 2/);
      assert.match(String(uncloneable), /could not be cloned/);
    }));

  test(`an executor of a worker ${kind} gives every result at the end, those answered early too`, async () => {
    const executor = open(url, { clock: impatient });
    await executor.ready();
    for (const steps of [
      ["return", "return", "answer"],
      ["answer", "return", "answer"],
      ["return", "answer", "return"],
      ["answer", "twice"],
    ] as Step[][]) {
      const results = await executor.run([...steps], runHandle({ size: steps.length }));
      assert.deepEqual(
        Array.from(results),
        steps.map((step) => (step === "twice" ? "first" : `${steps.length} items, attempt 1`)),
      );
    }
    await executor.close();
  });

  test(`the last items of a worker ${kind}'s batch may be answered first`, () =>
    withWorker(async (call) => {
      assert.deepEqual(await outcomes(call, ["return", "return", "answer"]), Array(3).fill("3 items, attempt 1"));
    }));

  test(`a large answer of a worker ${kind} comes whole`, () =>
    withWorker(async (call) => {
      const row = await call("large");
      assert.ok(row instanceof Float32Array && row.length === 50_000 && row.every((number) => number === 7));
    }));
}
