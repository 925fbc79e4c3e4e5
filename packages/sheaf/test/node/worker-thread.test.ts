import assert from "node:assert/strict";
import { test } from "node:test";
import { workerThread } from "../../dist/node/index.js";
import type probe from "./probe-worker.js";
import { openBatcher } from "./probe.js";

const probeUrl = new URL("./probe-worker.js", import.meta.url);

test("a batch runs in another thread, in order, on a model that was loaded once", async () => {
  const call = openBatcher(workerThread<typeof probe>(probeUrl, { data: { offset: 1 } }), { maxBatchSize: 8 });
  await call.ready();
  const results = await call.many([1, 2, 3].map((n) => ({ do: "double" as const, n })));
  assert.deepEqual(results, [3, 5, 7]);
  assert.notEqual(await call({ do: "thread" }), `${process.pid}/0`);
  assert.equal(await call({ do: "loads" }), 1);
  assert.equal(call.stats().items.error, 0);
});

test("instances run side by side, each with a model of its own", async () => {
  const call = openBatcher(workerThread<typeof probe>(probeUrl, { instances: 2, prefetch: 0 }), {
    maxBatchSize: 1,
  });
  await call.ready();
  const threads = await call.many(Array.from({ length: 8 }, () => ({ do: "thread" as const })));
  assert.equal(new Set(threads).size, 2);
});

test("a load that fails rejects ready() and every call with its error", async () => {
  const call = openBatcher(workerThread<typeof probe>(probeUrl, { data: { failWith: "no weights here" } }));
  await assert.rejects(call.ready(), { name: "RangeError", message: "no weights here" });
  await assert.rejects(call({ do: "loads" }), { name: "RangeError", message: "no weights here" });
});

test("a module that is not a worker rejects ready() and says what it must export", async () => {
  const executor = workerThread("data:text/javascript,export default 1");
  await assert.rejects(executor.ready(), /must `export default defineWorker/);
  await executor.close();
});

test("run time is measured in the worker", async () => {
  const call = openBatcher(workerThread<typeof probe>(probeUrl), { maxBatchSize: 1 });
  const runs: number[] = [];
  call.subscribe((record) => runs.push(record.runMs));
  await call({ do: "spin", ms: 20 });
  await call.close();
  assert.equal(runs.length, 1);
  assert.ok(runs[0]! >= 20, `runMs ${runs[0]}`);
});

test("close() lets a run end before its thread does", async () => {
  const executor = workerThread<typeof probe>(probeUrl);
  const call = openBatcher(executor, { maxBatchSize: 1 });
  await call.ready();
  const answer = call({ do: "spin", ms: 50 });
  await Promise.all([call.close(), answer.then((text) => assert.equal(text, "spun"))]);
  assert.deepEqual(executor.instances(), []);
});

test("an item that cannot be sent fails its batch with the reason", async () => {
  const call = openBatcher(workerThread<() => void, number>(probeUrl), { maxBatchSize: 1 });
  await assert.rejects(
    call(() => undefined),
    /could not be cloned/,
  );
});
