// What a Python worker does wrong, each with a real Python: one item pays, or one batch, and everybody else is served.
import assert from "node:assert/strict";
import { constants } from "node:os";
import { describe, test } from "node:test";
import { BatcherError } from "../../../dist/index.js";
import { workerCommand } from "../../../dist/node/index.js";
import { endsOf } from "../../support/rig.js";
import { impatient } from "../probe.js";
import { double, isAlive, pathOf, setUp, skipWithoutPython, until, type Item } from "./setup.js";

const among = (bad: Item): Item[] => Array.from({ length: 8 }, (_, i) => (i === 2 ? bad : double(i)));

/** One error at its place, the results of the others; and the worker serves on. Returns the error. */
async function oneFails(
  bad: Item,
  options: Parameters<typeof setUp>[0] = {},
  restarts: number = 0,
): Promise<Error & { code?: string }> {
  const { executor, call } = await setUp(options);
  const ends = endsOf(await call.settle(among(bad)));
  const [error] = ends.splice(2, 1);
  assert.deepEqual(ends, [0, 2, 6, 8, 10, 12, 14]);
  assert.equal(await call(double(50)), 100);
  assert.equal(executor.restarts, restarts);
  await call.close();
  assert.deepEqual(executor.instances(), []);
  assert.ok(error instanceof Error);
  return error;
}

describe("a Python worker", { skip: skipWithoutPython, concurrency: false, timeout: 600_000 }, () => {
  test("an exception in the place of an item fails that item, with its type, message and traceback", async () => {
    const error = await oneFails({ do: "error", message: "not this one" });
    assert.deepEqual([error.name, error.message], ["ValueError", "not this one"]);
    const invalid = await oneFails({ do: "invalid", message: "too long" });
    assert.ok(invalid instanceof BatcherError);
    assert.deepEqual([invalid.code, invalid.message], ["INVALID_INPUT", "too long"]);
  });

  test("an exception that cannot be looked at fails like any other, and the process goes on", async () => {
    const error = await oneFails({ do: "unprintable" });
    const message = "its message cannot be read: __str__ raised ValueError";
    assert.deepEqual([error.name, error.message, error.code], ["Unprintable", message, undefined]);
    const { executor, call } = await setUp({}, { maxBatchSize: 1 });
    await assert.rejects(call({ do: "raise-unprintable" }), { name: "Unprintable", message });
    assert.equal(await call(double(1)), 2);
    assert.equal(executor.restarts, 0);
  });

  test("results over 256 MiB fail their batch with both sizes, and the process goes on", async () => {
    const { executor, call } = await setUp({}, { maxBatchSize: 1 });
    await assert.rejects(call({ do: "large", bytes: 2 ** 28 }), /take 2684354\d\d bytes .*268435456 .* are the most/);
    assert.equal(await call(double(1)), 2);
    assert.equal(executor.restarts, 0);
  });

  test("an exception that is raised fails its item and no other, and the process goes on", async () => {
    const { executor, call } = await setUp({}, { maxBatchSize: 2 });
    const [before] = executor.instances();
    const [error, ...others] = endsOf(await call.settle([{ do: "raise", message: "whole" }, double(1), double(2)]));
    assert.deepEqual([error.name, error.message], ["KeyError", "'whole'"]);
    assert.match(error.stack!, /Traceback[^]*probe\.py[^]*in obey/);
    assert.deepEqual(others, [2, 4]);
    assert.equal(executor.instances()[0]!.pid, before!.pid);
  });

  test("a result too many or too few is RESULT_COUNT for the batch, with both counts", async () => {
    const { call } = await setUp();
    const outcomes = await call.settle([{ ...double(1), short: true }, double(2), double(3)]);
    for (const { code, details } of endsOf(outcomes))
      assert.deepEqual([code, details], ["RESULT_COUNT", { expected: 3, received: 2 }]);
    assert.equal(await call(double(2)), 4);
  });

  test("a result that JSON cannot hold fails its item: NaN, or an object", async () => {
    assert.match((await oneFails({ do: "nan" })).message, /not JSON compliant/);
    assert.match((await oneFails({ do: "object" })).message, /holds a object, which JSON cannot hold/);
  });

  for (const [what, why, restarts] of [
    ["exit", /exit code 7/, 1],
    ["sys-exit", /exit code 3/, 1],
    ["kill", /signal SIGKILL/, 1],
    ["segfault", /signal SIGSEGV: Fatal Python error: Segmentation fault/, 1],
    ["rubbish", /violated the protocol: it sent a frame of \d+ \+ \d+ bytes is over the bound/, 1],
    ["half-a-frame", /the end of the pipe in the middle of a message/, 1],
  ] as const) {
    test(`${what}: one poison item among good ones costs one error and no result`, async () => {
      const error = await oneFails({ do: what }, { clock: impatient }, restarts);
      assert.equal(error.code, "WORKER_CRASHED");
      assert.match(error.message, why);
    });
  }

  // Elsewhere no limit holds, and the test would take the machine's memory.
  const skipWithoutLimit = process.platform !== "linux" && "only Linux bounds the memory of a process";
  test(
    "out of memory: an exception of Python's for the batch, and the process goes on",
    { skip: skipWithoutLimit },
    async () => {
      const { call } = await setUp({ data: { memory_mb: 1024 } }, { maxBatchSize: 1 });
      const outcomes = await call.settle([{ do: "hoard" }, { do: "hoard-natively" }, double(2)]);
      const [hoard, natively, after] = endsOf(outcomes);
      assert.deepEqual([hoard.name, natively.name, after], ["MemoryError", "MemoryError", 4]);
    },
  );

  test("an endless loop costs its batch RUN_TIMEOUT and its process; the next is served by another", async () => {
    const { executor, call } = await setUp({ clock: impatient }, { maxBatchSize: 1, runTimeoutMs: 1500 });
    const [before] = executor.instances();
    await assert.rejects(call({ do: "loop" }), { code: "RUN_TIMEOUT" });
    assert.equal(await call(double(2)), 4);
    assert.ok(!isAlive(before!.pid!));
    assert.equal(executor.restarts, 1);
  });

  test("what a run prints is in the log, by descriptor too, and disturbs no result", async () => {
    const { call, lines } = await setUp();
    assert.deepEqual(await call.many([{ do: "print", text: "hello log" }, double(1)]), ["printed", 2]);
    await call.close();
    const texts = lines.map(({ level, text }) => `${level} ${text}`);
    for (const line of ["info hello log", "info from a descriptor", "warning a warning", "info unloaded"]) {
      assert.ok(texts.includes(line), `${line} in ${texts.join("\n")}`);
    }
  });

  test("an error while the module is imported or loaded is what ready() says", async () => {
    const broken = workerCommand({ command: "python3", args: ["-c", "import no_such_module"], log: () => undefined });
    await assert.rejects(broken.ready(), {
      code: "WORKER_CRASHED",
      message:
        /python3: a worker ended before it was ready: exit code 1: ModuleNotFoundError: No module named 'no_such_module'/,
    });
    await broken.close();
    await assert.rejects(setUp({ data: { fail: "no weights" } }), { name: "RuntimeError", message: "no weights" });
    const silent = workerCommand({ command: "python3", args: ["-c", "pass"], log: () => undefined });
    await assert.rejects(silent.ready(), /exit code 0 before it sent anything \(does it call serve\(\)\?\)/);
    await silent.close();
    const absent = workerCommand({ command: "/nowhere/bin/python", log: () => undefined });
    await assert.rejects(absent.ready(), /cannot start \/nowhere\/bin\/python: .*ENOENT/);
    await absent.close();
  });

  test("a slow load keeps ready() waiting, and loadTimeoutMs ends it", async () => {
    const { call } = await setUp({ data: { load_s: 0.3 } });
    assert.equal(await call(double(1)), 2);
    await call.close();
    const stuck = setUp({ data: { load_s: 600 }, loadTimeoutMs: 500 });
    await assert.rejects(stuck, /was not ready after 500 ms \(loadTimeoutMs\)/);
  });

  test("a fork that comes back from run sends nothing; what it leaves behind ends with the worker", async () => {
    const { executor, call } = await setUp();
    assert.deepEqual(await call.many([{ do: "fork" }, double(1)]), ["from the parent", 2]);
    const orphan = (await call({ do: "orphan" })) as number;
    assert.ok(isAlive(orphan));
    assert.equal(await call(double(3)), 6);
    assert.equal(executor.restarts, 0);
    await call.close();
    await until(() => !isAlive(orphan));
  });

  test("what a run forks obeys SIGTERM: a child that is terminated, and a pool at its end", async () => {
    const { executor, call } = await setUp();
    const terminated = await call({ do: "terminated" });
    assert.equal(terminated, constants.signals.SIGTERM, "the exit status of a process that the signal ended");
    assert.deepEqual(await call({ do: "pool", numbers: [-1, 2, -3] }), [1, 2, 3]);
    // The worker itself leaves signals to its parent as before.
    process.kill(executor.instances()[0]!.pid!, "SIGTERM");
    assert.equal(await call(double(3)), 6);
    assert.equal(executor.restarts, 0);
  });

  test("items of 10 MB arrive whole", async () => {
    const { call } = await setUp();
    const text = "ü".repeat(5_000_000);
    assert.deepEqual(
      await call.many([
        { do: "text", text },
        { do: "text", text: text + "x" },
      ]),
      [5_000_000, 5_000_001],
    );
  });

  test("SIGTERM to the worker under load ends nothing: its parent decides", async () => {
    const { executor, call } = await setUp({}, { maxBatchSize: 4 });
    const results = Promise.all(Array.from({ length: 200 }, (_, n) => call(double(n))));
    process.kill(executor.instances()[0]!.pid!, "SIGTERM");
    assert.deepEqual(
      await results,
      Array.from({ length: 200 }, (_, n) => 2 * n),
    );
    assert.equal(executor.restarts, 0);
  });

  test("a running batch without callers sees it; a prefetched one is skipped", async () => {
    const { call, lines } = await setUp({}, { maxBatchSize: 1 });
    const [running, ahead] = [new AbortController(), new AbortController()];
    const gone = [
      call({ do: "until-cancelled" }, { signal: running.signal }),
      call({ do: "runs" }, { signal: ahead.signal }),
    ];
    const outcomes = Promise.allSettled(gone);
    await until(() => call.pending.inFlight === 2);
    // In this order, it knows of the prefetched one when it ends the running one.
    ahead.abort(new Error("gone"));
    running.abort(new Error("gone"));
    for (const outcome of await outcomes) assert.equal(outcome.status, "rejected");
    // The one that waits until it is cancelled has run; `runs` was never begun.
    assert.equal(await call({ do: "runs" }), 2);
    await call.close();
    assert.ok(lines.some(({ text }) => text === "cancelled"));
  });
});

test("a wrong item is a TypeError that names it", { skip: skipWithoutPython }, async () => {
  const executor = workerCommand<unknown, unknown>({ command: "python3", args: [pathOf("arrays.py")] });
  await executor.ready();
  const good = { row: [1, 2, 3, 4], text: "x", flags: [1, 1, 1] };
  const signal = new AbortController().signal;
  for (const [item, message] of [
    [
      { ...good, row: [1] },
      /item 1\.row must be a Float32Array or an array of 4 numbers \(float32\[2,2\]\), got an array of 1/,
    ],
    [{ ...good, text: 7 }, /item 1\.text must be a text \(text\), got 7/],
    [{ row: good.row, flags: good.flags }, /item 1 must be an object with "text", got an object/],
    ["text", /item 1 must be an object with "row", got "text"/],
  ] as const) {
    await assert.rejects(
      executor.run([good, item], { batchId: 1, size: 2, signal } as never),
      (error: Error & { itemIndex?: number }) => {
        assert.match(error.message, message);
        return error instanceof TypeError && error.itemIndex === 1;
      },
    );
  }
  await executor.close();
});
