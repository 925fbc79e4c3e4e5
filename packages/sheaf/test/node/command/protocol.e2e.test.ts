// A worker that breaks the protocol is ended with a reason; what a result holds is checked before it is read.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { workerCommand, type CommandExecutor } from "../../../dist/node/index.js";
import { impatient, openBatcher } from "../probe.js";
import { isAlive, pathOf, skipWithoutPython, until } from "./setup.js";

function open(...args: string[]): CommandExecutor<unknown, unknown> {
  return workerCommand({
    command: "python3",
    args: [pathOf("raw.py"), ...args],
    niceness: 0,
    log: () => undefined,
    clock: impatient,
  });
}

describe(
  "a worker that speaks the protocol by hand",
  { skip: skipWithoutPython, concurrency: false, timeout: 600_000 },
  () => {
    for (const [how, why] of [
      ["result-before-ready", /it sent "result" out of order/],
      ["not-json", /it sent a header that is not JSON/],
      ["no-type", /it sent a header without a type/],
      ["unknown", /it sent "hurray" out of order/],
      [
        "bad-declaration",
        /outputs must be "text", "json", or a type and shape such as "float32\[768\]".*got "float32\[none\]"/,
      ],
    ] as const) {
      test(`${how}: ready() rejects with the reason`, async () => {
        const executor = open(how);
        await assert.rejects(executor.ready(), why);
        await executor.close();
      });
    }

    for (const [how, why] of [
      ["other-id", /result of batch 6 where 1 was next/],
      ["no-columns", /a result with an array of 0 as columns; 1 are declared/],
      ["outside", /a column outside its payload of 0 bytes/],
      ["tensor-short", /a tensor of 1 × float32\[2\] in 4 bytes at 0/],
      ["tensor-other", /a tensor of float32\[1\] where float32\[2\] is declared/],
      ["text-short", /a column of text without offsets/],
    ] as const) {
      test(`${how}: its batch gets WORKER_CRASHED with the reason, and the process is replaced`, async () => {
        const executor = open(how);
        const call = openBatcher(executor, { maxBatchSize: 1 });
        await assert.rejects(call("item"), { code: "WORKER_CRASHED", message: why });
        await executor.ready();
        await until(() => executor.restarts === 1);
      });
    }

    for (const [how, why] of [
      ["text-wild", /a text outside its column/],
      ["json-broken", /JSON/],
      ["json-count", /an array of 2 as a JSON column of 1 values/],
      ["error-outside", /returned 1 results for 1 items/],
      ["error-of-no-shape", /The worker failed: 7/],
    ] as const) {
      test(`${how}: its batch gets an error, and the process goes on`, async () => {
        const executor = open(how);
        const call = openBatcher(executor, { maxBatchSize: 1 });
        await assert.rejects(call("item"), why);
        assert.equal(executor.restarts, 0);
      });
    }

    for (const [how, why] of [
      ["answer-other-id", /answer of batch 6 where 1 was next/],
      ["answer-outside", /an answer for item 2, which is not open in a batch of 2/],
      ["answer-nothing", /an answer with "all" as indices/],
      ["answer-too-many", /an answer with 1 results for 2 items/],
      ["answer-twice", /an answer for item 0, which is not open in a batch of 2/],
    ] as const) {
      test(`${how}: the items without an answer get WORKER_CRASHED with the reason`, async () => {
        const executor = open(how);
        const call = openBatcher(executor, { maxBatchSize: 2, onBatchError: "fail" });
        const outcomes = await call.settle(["a", "b"]);
        const errors = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason as Error] : []));
        assert.equal(errors.length, how === "answer-twice" ? 1 : 2);
        for (const error of errors) assert.match(error.message, why);
      });
    }

    test("an answer before the end of the run, and the result of the other item", async () => {
      const call = openBatcher(open("answer"), { maxBatchSize: 2 });
      assert.deepEqual(await call.many(["a", "b"]), ["now", "ok"]);
    });

    test("a second ready ends it", async () => {
      const executor = open("ready-twice");
      const reasons: string[] = [];
      executor.onInstance(({ why }) => why !== undefined && reasons.push(why));
      await until(() => reasons.length > 0);
      assert.match(reasons[0]!, /it sent "ready" out of order/);
      await executor.close();
    });

    test("a worker that is started again and declares something else is refused", async () => {
      const file = join(tmpdir(), `sheaf-declared-${process.pid}`);
      const executor = open("other-each-time", file);
      const call = openBatcher(executor, { maxBatchSize: 1 });
      const reasons: string[] = [];
      executor.onInstance(({ why }) => why !== undefined && reasons.push(why));
      await call.ready();
      await assert.rejects(call("crash"), { code: "WORKER_CRASHED" });
      await assert.rejects(call("next"), {
        code: "WORKER_CRASHED",
        message: /no worker is left|none could be started to run it again/,
      });
      assert.match(reasons.join("\n"), /declares .*"kind":"text".* the first one declared .*"kind":"json"/);
      assert.deepEqual(executor.declaration!.outputs, [{ kind: "json" }]);
      await call.close();
      rmSync(file);
    });

    test("a worker that does not exit after `closed` is killed", async () => {
      const executor = workerCommand({ command: "python3", args: [pathOf("raw.py"), "lingers"], closeTimeoutMs: 300 });
      await executor.ready();
      const { pid } = executor.instances()[0]!;
      await executor.close();
      await until(() => !isAlive(pid!));
    });
  },
);
