import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { WorkerExecutor } from "../../dist/node/index.js";
import { codesOf } from "../support/rig.js";
import type { Command } from "./probe-worker.js";
import { double, impatient, kinds, probeUrl, setUp, until, withoutPauses } from "./probe.js";

// A batch that did not make its worker end does not pay for it.

/** `E2BIG`: no process can be started with it, as none can without memory. */
const tooMuch = "x".repeat(1 << 18);
const variable = "SHEAF_TEST_TOO_MUCH";

for (const kind of ["thread", "process"] as const) {
  describe(`in a ${kind}`, { concurrency: false }, () => {
    test('with onBatchError: "fail" a batch that was sent ahead of the crash runs elsewhere, once', async () => {
      const { executor, call } = await setUp(kind, {}, { maxBatchSize: 1, onBatchError: "fail" });
      const outcomes = call.settle([{ do: "exit", afterMs: 200 }, { do: "attempt" }, double(2)]);
      assert.deepEqual(codesOf(await outcomes), ["WORKER_CRASHED", 1, 4]);
      assert.deepEqual([executor.restarts, call.stats().items.error], [1, 1]);
    });

    test("results that were still on their way when the next batch ended the worker arrive", async () => {
      const { call } = await setUp(kind, {}, { maxBatchSize: 1, onBatchError: "fail" });
      const length = 16 * 1024 * 1024;
      const [text, exit] = codesOf(await call.settle([{ do: "text", length }, { do: "exit" }]));
      assert.deepEqual([(text as string).length, exit], [length, "WORKER_CRASHED"]);
    });

    test("runTimeoutMs does not run while the quarantined instance starts", async () => {
      const { call } = await setUp(
        kind,
        { data: { loadMs: 1500 } },
        { maxBatchSize: 1, runTimeoutMs: 1000, clock: withoutPauses() },
      );
      assert.equal(await call({ do: "exit", ifFirst: true }), "survived");
      assert.equal(call.stats().abandonedRuns, 0);
    });

    test("half a suspect batch with a result too few gets RESULT_COUNT, and no caller undefined", async () => {
      const { call } = await setUp(kind, { clock: impatient }, { maxBatchSize: 4 });
      const outcomes = codesOf(await call.settle([double(1), { do: "short" }, { do: "exit" }, double(4)]));
      assert.deepEqual(outcomes, ["RESULT_COUNT", "RESULT_COUNT", "WORKER_CRASHED", 8]);
    });
  });
}

test("a quarantined process that cannot be started is started again, and the batch gets its results", async (t) => {
  const { executor, call } = await setUp("process", { clock: impatient }, { maxBatchSize: 1 });
  t.after(() => delete process.env[variable]);
  const why = watchFailedStarts(executor, () => why.length === 2 && delete process.env[variable]);
  const result = call({ do: "wait", ms: 200 });
  await until(executor, "busy");
  process.env[variable] = tooMuch;
  process.kill(executor.instances()[0]!.pid!, "SIGKILL");
  assert.equal(await result, "waited");
  assert.match(why[0]!, /E2BIG/);
});

test("an item whose quarantine cannot be started is not convicted: the error says what could not be done", async (t) => {
  const { executor, call } = await setUp("process", { clock: impatient }, { maxBatchSize: 1 });
  t.after(() => delete process.env[variable]);
  const why = watchFailedStarts(executor);
  const result = call({ do: "wait", ms: 200 });
  await until(executor, "busy");
  process.env[variable] = tooMuch;
  process.kill(executor.instances()[0]!.pid!, "SIGKILL");
  await assert.rejects(result, (error: { code: string; message: string; details: Record<string, unknown> }) => {
    assert.equal(error.code, "WORKER_CRASHED");
    assert.match(
      error.message,
      /none could be started to run it again \(it ended more than 5 times, less than 60 s apart\): .*E2BIG/,
    );
    assert.equal(error.details["items"], undefined);
    return true;
  });
  assert.equal(why.length, 6);
});

test("an instance that is killed while another still loads is started again, and ready() resolves", async () => {
  const file = join(tmpdir(), `sheaf-slow-first-load-${process.pid}`);
  const executor = kinds.process(probeUrl, { instances: 2, data: { slowLoad: { file, load: 2, ms: 2000 } } });
  await until(executor, "ready");
  process.kill(executor.instances().find(({ state }) => state === "ready")!.pid!, "SIGKILL");
  await executor.ready();
  assert.equal(executor.restarts, 1);
  assert.deepEqual(
    executor.instances().map(({ state }) => state),
    ["ready", "ready"],
  );
  await executor.close();
  rmSync(file);
});

function watchFailedStarts(executor: WorkerExecutor<Command, unknown>, then?: () => unknown): string[] {
  const why: string[] = [];
  executor.onInstance(({ instance, why: reason }) => {
    if (instance.role !== "quarantined" || instance.state !== "dead" || reason === undefined) return;
    why.push(reason);
    then?.();
  });
  return why;
}
