// `context.answer` of a Python worker: callers have their results before the run has ended.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createBatcher, type Batcher } from "../../../dist/index.js";
import { runHandle } from "../../../dist/executors.js";
import { workerCommand, type CommandExecutor } from "../../../dist/node/index.js";
import { endsOf, watch } from "../../support/rig.js";
import { impatient } from "../probe.js";
import { pathOf, skipWithoutPython } from "./setup.js";

interface Result {
  readonly word: string;
  readonly size: Float32Array;
}

const open = (): CommandExecutor<string, Result> =>
  workerCommand({
    command: "python3",
    args: [pathOf("answers.py")],
    niceness: 0,
    log: () => undefined,
    clock: impatient,
  });

async function withWorker(
  use: (call: Batcher<string, Result>) => Promise<void>,
  onBatchError: "bisect" | "fail" = "bisect",
): Promise<void> {
  const call = createBatcher(open(), { onBatchError });
  await call.ready();
  await use(call);
  await call.close();
}

/** The words, or the errors' messages. */
const wordsOf = async (call: Batcher<string, Result>, texts: string[]): Promise<string[]> =>
  endsOf(await call.settle(texts)).map((end) => end.word ?? end.message);

describe("early answers of a Python worker", { skip: skipWithoutPython, timeout: 300_000 }, () => {
  test("an answer reaches its caller while the run goes on", () =>
    withWorker(async (call) => {
      const controller = new AbortController();
      const early = call("early bird");
      const late = watch(call("until all left", { signal: controller.signal }));
      const { word, size } = await early;
      assert.deepEqual([word, [...size]], ["first early bird", [10]]);
      assert.equal(late.status, "pending");
      controller.abort();
    }));

  test("the first answer counts; the run returns a result for each item, or nothing where all are answered", () =>
    withWorker(async (call) => {
      assert.deepEqual(await wordsOf(call, ["b", "early", "c"]), ["last b", "first early", "last c"]);
      assert.deepEqual(await wordsOf(call, ["early", "all of them", "c"]), [
        "first early",
        "last all of them",
        "last c",
      ]);
      assert.deepEqual(await wordsOf(call, ["early", "early too"]), ["first early", "first early too"]);
      const why = "run returned 2 results for 3 items; an answered item keeps its place";
      assert.deepEqual(await wordsOf(call, ["early", "one short", "c"]), ["first early", why, why]);
    }, "fail"));

  test("an error is an answer too, and a result that does not fit fails its item alone", () =>
    withWorker(async (call) => {
      const [bad, b, long] = await wordsOf(call, ["bad", "b", "long"]);
      assert.deepEqual([bad, b], ["a bad text", "last b"]);
      assert.match(long!, /2 numbers, float32\[1\] has 1|shape \[1, 2\]/);
    }));

  test("an index out of range and a wrong number of results fail the unanswered items", () =>
    withWorker(async (call) => {
      assert.deepEqual(await wordsOf(call, ["early", "beyond"]), [
        "first early",
        "answer: an index must be 0 to 1, got 2",
      ]);
      assert.deepEqual(await wordsOf(call, ["two", "early"]), ["answer got 2 results for 1 items", "first early"]);
    }, "fail"));

  test("an answered item does not run again after a crash", () =>
    withWorker(async (call) => {
      assert.deepEqual(await wordsOf(call, ["early", "crash"]), ["first early", "last crash"]);
      assert.equal(call.stats().items.ok, 2);
    }));

  test("an executor gives every result at the end, those answered early too", async () => {
    const executor = open();
    await executor.ready();
    const results = await executor.run(["b", "early", "c"], runHandle({ size: 3 }));
    assert.deepEqual(
      Array.from(results, (result) => (result as Result).word),
      ["last b", "first early", "last c"],
    );
    await executor.close();
  });
});
