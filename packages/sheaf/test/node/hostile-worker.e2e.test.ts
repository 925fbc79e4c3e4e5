import assert from "node:assert/strict";
import { getPriority, setPriority } from "node:os";
import { describe, test } from "node:test";
import { runHandle } from "../../dist/executors.js";
import { workerProcess, workerThread } from "../../dist/node/index.js";
import { endsOf } from "../support/rig.js";
import type { Mischief } from "./hostile-worker.js";
import type hostile from "./hostile-worker.js";
import { kinds as probes, openBatcher, probeUrl } from "./probe.js";

const url = new URL("./hostile-worker.js", import.meta.url);
const kinds = { thread: workerThread<typeof hostile>, process: workerProcess<typeof hostile> } as const;

const outcomes: Partial<Record<Mischief, RegExp>> = {
  "results without end": /RESULT_COUNT .*returned 1000000000000 results for 1 items/,
  "a negative count": /RESULT_COUNT .*returned -1 results for 1 items/,
  "a text": /TypeError .*must return an array with one result per item, got "ok"/,
  "a result nested too deep": /RangeError Maximum call stack size exceeded/,
  "an unreadable error": /Error Thrown: an error that cannot be read/,
  "an unreadable error in a place": /Error Thrown: an error that cannot be read/,
};

for (const kind of ["thread", "process"] as const) {
  describe(`in a ${kind}`, { concurrency: false }, () => {
    for (const [mischief, outcome] of Object.entries(outcomes)) {
      test(`${mischief}: its batch gets an error, and the instance goes on`, async () => {
        const executor = kinds[kind](url);
        const call = openBatcher(executor, { maxBatchSize: 1 });
        const told = await call(mischief as Mischief).catch((error: Error & { code?: string }) => {
          return `${error.code ?? error.name} ${error.message}`;
        });
        assert.match(told, outcome);
        assert.equal(await call("nothing"), "ok");
        assert.equal(executor.restarts, 0);
      });
    }

    test("a result that cannot leave the worker fails alone, without another run", async () => {
      const executor = kinds[kind](url);
      const call = openBatcher(executor, { maxBatchSize: 4, onBatchError: "fail" });
      const told = endsOf(await call.settle(["nothing", "a function", "a throwing getter", "nothing"]));
      assert.match(String(told[1]), /could not be cloned/);
      assert.match(String(told[2]), /not to be read/);
      assert.deepEqual([told[0], told[3]], ["ok", "ok"]);
    });

    test("what a module posts to its parentPort, or closing that, is nothing to the pool", async () => {
      const executor = kinds[kind](url);
      const call = openBatcher(executor, { maxBatchSize: 1 });
      assert.deepEqual(await call.many(["post to parentPort", "nothing"]), ["ok", "ok"]);
      assert.deepEqual(await call.many(["close parentPort", "nothing"]), ["ok", "ok"]);
      assert.equal(executor.restarts, 0);
    });

    test("a batch that is too large for one message is refused with what to do, and the next one runs", async () => {
      const executor = kinds[kind](url) as unknown as ReturnType<typeof workerThread<unknown, unknown>>;
      const call = openBatcher(executor, { maxBatchSize: Infinity, maxQueueSize: 50_000, onBatchError: "fail" });
      const text = "x".repeat(60_000);
      const texts = call.many(Array.from({ length: 10_000 }, () => text));
      await assert.rejects(texts, {
        name: "RangeError",
        message: /^10000 values of 600000000 characters .*maxBatchSize/,
      });
      const row = new Uint8Array(60_000);
      const rows = call.many(Array.from({ length: 40_000 }, () => row));
      await assert.rejects(rows, { name: "RangeError", message: /^40000 values of 2\.2 GiB .*maxBatchWeight/ });
      assert.equal(await call("nothing"), "ok");
    });

    // Elsewhere a thread has no priority of its own.
    const canTell = kind === "process" || process.platform === "linux";
    test("niceness is counted from the priority that the program has", { skip: !canTell && "Linux only" }, async () => {
      const own = getPriority();
      setPriority(Math.min(19, own + 2));
      const executor = probes[kind](probeUrl, { niceness: 3 });
      await executor.ready();
      const [priority] = Array.from(await executor.run([{ do: "niceness" }], runHandle({ size: 1 })));
      assert.equal(priority, Math.min(19, own + 5));
      await executor.close();
    });
  });
}

test("what a module writes to the pipe of its process ends that process, not the program; its batch alone pays", async () => {
  const executor = workerProcess<typeof hostile>(url);
  const call = openBatcher(executor, { maxBatchSize: 1 });
  await assert.rejects(call("write to the pipe"), {
    code: "WORKER_CRASHED",
    message: /received malformed data from a worker: something else wrote to its pipe/,
  });
  assert.equal(await call("nothing"), "ok");
});
