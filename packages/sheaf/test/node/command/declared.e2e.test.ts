// What goes in and out is what the worker declares, whatever the size of the batch; and what its options change.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { getPriority } from "node:os";
import { describe, test } from "node:test";
import { workerCommand } from "../../../dist/node/index.js";
import { endsOf } from "../../support/rig.js";
import { openBatcher } from "../probe.js";
import { double, isAlive, pathOf, setUp, skipWithoutPython, until, type Item } from "./setup.js";

const quiet = { log: (): void => undefined };

/** A worker of one line. */
const inline = (code: string): Parameters<typeof workerCommand>[0] => ({
  command: "python3",
  args: ["-c", `from sheaf_worker import serve\n${code}`],
  ...quiet,
});

describe("a Python worker's declaration", { skip: skipWithoutPython, concurrency: false, timeout: 600_000 }, () => {
  test("arrays, texts and JSON travel by column, writable, the same for one item and for many", async () => {
    type Row = { row: Float32Array | number[]; text: string; flags: Uint8Array };
    const executor = workerCommand<Row, Record<string, unknown>>({
      command: "python3",
      args: [pathOf("arrays.py")],
      ...quiet,
    });
    const call = openBatcher(executor, { maxBatchSize: 3 });
    await call.ready();
    const tensor = { kind: "tensor" as const, dtype: "float32" as const, shape: [2, 2] };
    const flags = { name: "flags", kind: "tensor" as const, dtype: "bool" as const, shape: [3] };
    assert.deepEqual(executor.declaration, {
      name: "arrays",
      inputs: [{ name: "row", ...tensor }, { name: "text", kind: "text" }, flags],
      outputs: [{ name: "row", ...tensor }, { name: "shout", kind: "text" }, flags, { name: "seen", kind: "json" }],
      embedding: false,
      sample: [{ row: [[1, 2], [3, 4]], text: "hi", flags: [1, 0, 1] }], // prettier-ignore
      cacheable: undefined,
      weight: undefined,
    });
    const item = (n: number, text: string): Row => ({
      row: Float32Array.of(n, 2, 3, 4),
      text,
      flags: Uint8Array.of(1, 0, 1),
    });
    const result = (n: number, shout: string, size: number): unknown => ({
      row: Float32Array.of(n + 1, 3, 4, 5),
      shout,
      flags: Uint8Array.of(1, 0, 1),
      seen: { kind: "f", n: size },
    });
    assert.deepEqual(await call(item(7, "grüße 🙂")), result(7, "GRÜSSE 🙂", 1));
    const three = [item(1, "a"), { ...item(2, ""), row: [2, 2, 3, 4] }, item(3, "ascii")];
    assert.deepEqual(await call.many(three), [result(1, "A", 3), result(2, "", 3), result(3, "ASCII", 3)]);
    const [good, wrong] = endsOf(await call.settle([item(1, "a"), item(2, "wrong")]));
    assert.deepEqual(good, result(1, "A", 2));
    assert.match(wrong.message, /a result has 1 numbers, float32\[2,2\] has 4/);
    assert.deepEqual(three[0], item(1, "a"), "the caller's own array is not changed");
  });

  test("rows are the caller's own memory, or views with resultRows", async () => {
    const code = `serve(lambda rows: rows, inputs="float32[2]", outputs="float32[2]")`;
    for (const resultRows of ["own", "view"] as const) {
      const call = openBatcher(workerCommand<number[], Float32Array>({ ...inline(code), resultRows }), {
        maxBatchSize: 2,
      });
      const [a, b] = await call.many([
        [1, 2],
        [3, 4],
      ]);
      assert.deepEqual([...a!, ...b!], [1, 2, 3, 4]);
      assert.equal(a!.buffer === b!.buffer, resultRows === "view");
    }
  });

  test("int64 goes in and out as BigInt", async () => {
    const code = `serve(lambda rows: rows, inputs="int64[1]", outputs="int64[1]")`;
    const call = openBatcher(workerCommand<BigInt64Array, BigInt64Array>(inline(code)));
    assert.deepEqual(await call(BigInt64Array.of(2n ** 62n)), BigInt64Array.of(2n ** 62n));
  });

  test('outputs="embedding" learns its length from the sample, and the sample may be a list of items', async () => {
    const code = `serve(lambda texts: [[len(t), 1.0] for t in texts], inputs="text", outputs="embedding", sample=["a", "bc"])`;
    const executor = workerCommand<string, Float32Array>(inline(code));
    const call = openBatcher(executor);
    assert.deepEqual(await call("four"), Float32Array.of(4, 1));
    const { outputs, embedding, sample } = executor.declaration!;
    assert.deepEqual(
      [outputs, embedding, sample],
      [[{ kind: "tensor", dtype: "float32", shape: [2] }], true, ["a", "bc"]],
    );
  });

  for (const [code, message] of [
    [`serve(lambda texts: texts, inputs="words")`, /inputs must be "text", "json", or a type and shape.*got 'words'/],
    [`serve(lambda texts: texts, inputs="float32")`, /inputs must be .*got 'float32'/],
    [`serve(lambda texts: texts, inputs={"a": "embedding[2]"})`, /inputs\['a'\] must be .*got 'embedding\[2\]'/],
    [`serve(lambda texts: texts, cacheable=3)`, /cacheable must be True or False, got 3/],
    [`serve(lambda texts: texts, weight="tokens")`, /weight must be "length", got 'tokens'/],
    [`serve(7)`, /run must be a function, got 7/],
    [`async def run(items): pass\nserve(run)`, /run must be a plain function, not an async one/],
    [
      `serve(lambda texts: "abc", inputs="text", sample="x")`,
      /the sample failed: TypeError: run must return one result per item, in order, got str/,
    ],
    [`serve(lambda texts: [], inputs="text", sample="x")`, /run returned 0 results for the 1 items of the sample/],
    [`serve(lambda texts: [ValueError("no")], inputs="text", sample="x")`, /the sample failed: no/],
    [
      `serve(lambda texts: texts, inputs="text", outputs="embedding")`,
      /outputs="embedding" needs a sample, or its length/,
    ],
    [
      `serve(lambda rows: rows, inputs="float32[2]", outputs="float32[3]", sample=[1, 2])`,
      // With NumPy rows are arrays, without it lists.
      /the sample failed: (results have the shape \[1, 2\]; for float32\[3\] it must be \[1, 3\]|a result has 2 numbers, float32\[3\] has 3)/,
    ],
  ] as const) {
    test(`a wrong declaration is reported at the start: ${code.slice(0, 70)}`, async () => {
      const executor = workerCommand(inline(code));
      await assert.rejects(executor.ready(), message);
      await executor.close();
    });
  }

  test("a worker says whether its results may be kept", async () => {
    for (const [written, read] of [
      ["True", true],
      ["False", false],
    ] as const) {
      const executor = workerCommand(inline(`serve(lambda texts: texts, cacheable=${written})`));
      await executor.ready();
      assert.equal(executor.declaration!.cacheable, read);
      await executor.close();
    }
  });

  test("a worker says that its items weigh their length", async () => {
    const executor = workerCommand(inline(`serve(lambda texts: texts, weight="length")`));
    await executor.ready();
    assert.equal(executor.declaration!.weight, "length");
    await executor.close();
  });

  test("run and load may take fewer parameters, and results may come from a generator", async () => {
    const code = `def run(items):\n  for item in items: yield item + 1\nserve(run, load=lambda: None)`;
    const call = openBatcher(workerCommand<number, number>(inline(code)));
    assert.deepEqual(await call.many([1, 2]), [2, 3]);
  });

  test("data reaches load; the environment is that of this process, with what `env` sets and takes away", async () => {
    process.env["SHEAF_TEST_SECRET"] = "secret";
    const { call } = await setUp({ env: { SHEAF_TEST_SECRET: undefined, SHEAF_TEST_SET: "set" } });
    const names = ["SHEAF_TEST_SECRET", "SHEAF_TEST_SET", "HOME"];
    const values = await call.many(names.map((name) => ({ do: "environment", name })));
    delete process.env["SHEAF_TEST_SECRET"];
    assert.deepEqual(values, [null, "set", process.env["HOME"] ?? null]);
    await call.close();
    assert.throws(() => workerCommand({ command: "python3", data: 1n }), /data must be a JSON value, got 1/);
    assert.throws(() => workerCommand({ command: "" }), /command must be a non-empty string, got ""/);
    assert.throws(() => workerCommand({ command: "x", arg: [] } as never), /unknown option arg; did you mean args\?/);
  });

  test("instances are processes of their own, at a lower priority", async () => {
    const { executor } = await setUp({ instances: 2, niceness: 3 });
    const pids = executor.instances().map(({ pid }) => pid!);
    assert.equal(new Set(pids).size, 2);
    for (const pid of pids) assert.equal(getPriority(pid), Math.min(19, getPriority() + 3));
  });

  test("on Windows it says where it runs", () => {
    const { platform } = process;
    Object.defineProperty(process, "platform", { value: "win32" });
    try {
      assert.throws(
        () => workerCommand({ command: "python3" }),
        /runs on Linux and macOS, not on Windows: use it in WSL/,
      );
    } finally {
      Object.defineProperty(process, "platform", { value: platform });
    }
  });

  test("each instance knows its number, also the one that replaces another", async () => {
    const { executor, call } = await setUp({ instances: 3 }, { maxBatchSize: 1 });
    const asked: Item[] = Array.from({ length: 3 }, () => ({ do: "environment", name: "SHEAF_WORKER_INDEX" }));
    assert.deepEqual(new Set(await call.many(asked)), new Set(["0", "1", "2"]));
    await assert.rejects(call({ do: "kill" }), { code: "WORKER_CRASHED" });
    await until(
      () => executor.instances().filter(({ role, state }) => role === "serving" && state === "ready").length === 3,
    );
    assert.deepEqual(new Set(await call.many(asked)), new Set(["0", "1", "2"]));
  });

  test("an instance is recycled after so many batches, and no call fails meanwhile", async () => {
    const { executor, call } = await setUp({ recycleAfterBatches: 2 });
    const [first] = executor.instances();
    let n = 0;
    while ((await call({ do: "pid" })) === first!.pid) assert.equal(await call(double(++n)), 2 * n);
    assert.ok(n > 0);
    assert.equal(executor.restarts, 0);
  });

  test("a worker whose parent is killed ends too, whatever it runs", async () => {
    const script = `
      const { workerCommand } = await import(${JSON.stringify(new URL("../../../dist/node/index.js", import.meta.url).href)});
      const executor = workerCommand({ command: "python3", args: [${JSON.stringify(pathOf("probe.py"))}] });
      await executor.ready();
      const signal = new AbortController().signal;
      void executor.run([{ do: "loop" }], { batchId: 1, size: 1, signal });
      console.log(executor.instances()[0].pid);`;
    const parent = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const pid = await new Promise<number>((resolve) => parent.stdout.once("data", (chunk) => resolve(Number(chunk))));
    assert.ok(isAlive(pid));
    parent.kill("SIGKILL");
    await until(() => !isAlive(pid));
  });
});
