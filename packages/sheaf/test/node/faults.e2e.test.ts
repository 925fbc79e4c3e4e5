import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { assertResult } from "../../../../test/support/result.mjs";
import { codesOf, endsOf, numbers } from "../support/rig.js";
import type { Command } from "./probe-worker.js";
import { double, impatient, kinds, openBatcher, patientFrom, probeUrl, setUp, until, withoutPauses, type KindOfWorker } from "./probe.js"; // prettier-ignore

const poisoned = (poison: Command, size: number): Command[] =>
  Array.from({ length: size }, (_, i) => (i === 2 ? poison : double(i)));

/** What a worker of each kind survives, and the size of the batch that it happens to. */
const poisons: Record<KindOfWorker, readonly (readonly [Command["do"], number])[]> = {
  thread: [
    ["exit", 32],
    ["uncaught", 4],
    ["fill-heap", 4],
  ],
  process: [
    ["segfault", 32],
    ["exit", 4],
    ["uncaught", 4],
    ["fill-heap", 4],
    ["abort-process", 4],
  ],
};

/** A run is over its time when the test says so, and any later one never on a machine that is busy. */
function endingWhenTold(): { readonly runTimeoutMs: number; readonly clock: ReturnType<typeof patientFrom> } {
  const runTimeoutMs = 25_000;
  return { runTimeoutMs, clock: patientFrom(runTimeoutMs) };
}

const folder = mkdtempSync(join(tmpdir(), "sheaf-blocked-"));
process.on("exit", () => rmSync(folder, { recursive: true }));
let blocks = 0;

/** Hangs until `unblock`, at the end of the test at the latest: a thread that hung forever would keep this process alive. */
function blocked(t: TestContext, key?: string): Command & { do: "block" } {
  const block = { do: "block", until: join(folder, String(++blocks)), ...(key !== undefined && { key }) } as const;
  t.after(() => unblock(block));
  return block;
}

function unblock({ until }: { until: string }): void {
  writeFileSync(until, "");
}

for (const kind of ["thread", "process"] as const) {
  describe(`in a ${kind}`, { concurrency: false }, () => {
    for (const [name, size] of poisons[kind]) {
      test(`${name}: one poison item among ${size - 1} good ones costs one error and no result`, async () => {
        const { executor, call } = await setUp(kind, { heapLimitMb: 24 });
        const outcomes = await call.settle(poisoned({ do: name } as Command, size));
        assert.deepEqual(codesOf(outcomes), numbers(size).map((i) => (i === 2 ? "WORKER_CRASHED" : 2 * i))); // prettier-ignore
        assert.equal(await call(double(50)), 100);
        assert.deepEqual([call.stats().items.ok, call.stats().items.error], [size, 1]);
        await call.close();
        assert.deepEqual(executor.instances(), []);
      });
    }

    test("a batch of poison costs ⌈√n⌉ + 3 crashes, and only the first is counted against the limit of restarts", async () => {
      const { executor, call } = await setUp(kind, { clock: impatient }, { maxBatchSize: 8 });
      const opened = new Set<number>();
      executor.onInstance(({ instance }) => instance.role === "quarantined" && opened.add(instance.id));
      const outcomes = await call.settle(Array.from({ length: 8 }, () => ({ do: "exit" as const })));
      assert.deepEqual(codesOf(outcomes), Array(8).fill("WORKER_CRASHED"));
      assert.equal(opened.size, 3 + 3);
      assert.equal(executor.restarts, 1);
      assert.equal(await call(double(1)), 2);
    });

    test("a throw costs its batch the error, and the instance goes on", async () => {
      const { executor, call } = await setUp(kind, {}, { maxBatchSize: 2, onBatchError: "fail" });
      const outcomes = await call.settle([{ do: "throw", message: "teapot" }, double(1), double(2)]);
      const [thrown, mate, other] = endsOf(outcomes);
      for (const { name, message, status } of [thrown, mate])
        assert.deepEqual([name, message, status], ["RangeError", "teapot", 418]);
      assert.equal(other, 4);
      assert.equal(await call({ do: "loads" }), 1);
      assert.equal(executor.restarts, 0);
    });

    test('with onBatchError: "fail" the batch of a crash gets WORKER_CRASHED and is not run again', async () => {
      const { call } = await setUp(kind, {}, { maxBatchSize: 3, onBatchError: "fail" });
      const outcomes = await call.settle([double(1), { do: "exit" }, double(2)]);
      assert.deepEqual(codesOf(outcomes), Array(3).fill("WORKER_CRASHED"));
      assert.equal(await call(double(3)), 6);
    });

    test("the others serve while a suspect is in quarantine", async () => {
      const { executor, call } = await setUp(kind, { instances: 2 }, { maxBatchSize: 2 });
      const seen = new Set<string>();
      let servedDuringQuarantine = 0;
      executor.onInstance(({ instance }) => seen.add(`${instance.role} ${instance.state}`));
      const suspect = call.settle([double(1), { do: "exit" }]).then((outcomes) => {
        for (const { status } of outcomes) seen.add(status);
      });
      while (!seen.has("rejected")) {
        assert.equal(await call(double(4)), 8);
        if (executor.instances().some(({ role }) => role === "quarantined")) servedDuringQuarantine++;
      }
      await suspect;
      assert.ok(seen.has("fulfilled") && seen.has("quarantined busy"), [...seen].join());
      assert.ok(servedDuringQuarantine > 0);
    });

    test("a crash loop under load: every call settles, then all are refused until a pause is over, and served again", async () => {
      const clock = patientFrom(3200);
      const { executor, call } = await setUp(kind, { instances: 2, clock }, { maxBatchSize: 1, onBatchError: "fail" });
      // The sixth crash refuses every call, even while the other instance is about to restart: that one has to crash too.
      while (clock.held < 2) {
        const outcomes = await call.settle(Array.from({ length: 40 }, () => ({ do: "exit" as const })));
        assert.deepEqual(codesOf(outcomes), Array(40).fill("WORKER_CRASHED"));
        await new Promise((resolve) => setImmediate(resolve));
      }
      const { restartInMs = 0, error } = executor.outage!;
      assert.ok(restartInMs >= 3200 && restartInMs <= 6400, `${restartInMs}`);
      const message =
        /no worker is left; they crashed more than 5 times, less than 60 s apart\. The next one starts in \d s\.$/;
      assert.match(error.message, message);
      await assert.rejects(executor.ready(), { code: "WORKER_CRASHED", message });
      await assert.rejects(call(double(1)), { code: "WORKER_CRASHED", message });
      assert.deepEqual(
        executor.instances().map(({ state }) => state),
        ["dead", "dead"],
      );
      assert.equal(executor.restarts, 5);

      clock.letGo();
      assert.equal(executor.outage, undefined, "an instance loads, and a call waits for it");
      assert.equal(await call(double(1)), 2);
      assert.equal(executor.restarts, 7);
      await executor.ready();
    });

    test("a hang costs its own batch RUN_TIMEOUT; the next is served by another instance", async (t) => {
      const { runTimeoutMs, clock } = endingWhenTold();
      const { executor, call } = await setUp(kind, {}, { maxBatchSize: 1, runTimeoutMs, clock });
      const events: string[] = [];
      executor.onInstance(({ instance, why }) => why !== undefined && events.push(`${instance.id}: ${why}`));
      const [before] = executor.instances();
      const hung = assert.rejects(call(blocked(t)), { code: "RUN_TIMEOUT" });
      await until(executor, "busy");
      clock.letGo();
      await hung;
      assert.equal(await call(double(2)), 4);
      const serving = executor.instances().filter(({ role }) => role === "serving");
      assert.equal(serving.length, 1);
      assert.notEqual(serving[0]!.id, before!.id);
      assert.match(events.join("\n"), /1: .*runTimeoutMs/);
      // Without native code a thread is ended as a process is.
      while (executor.instances().some(({ id }) => id === before!.id)) await sleep(10);
    });

    test("a hang whose caller has gone before the timeout costs its instance too: the next is served by another", async (t) => {
      const { runTimeoutMs, clock } = endingWhenTold();
      const { executor, call } = await setUp(kind, {}, { maxBatchSize: 1, runTimeoutMs, clock });
      const [before] = executor.instances();
      const controller = new AbortController();
      const gone = call(blocked(t), { signal: controller.signal });
      await until(executor, "busy");
      controller.abort(new Error("gone"));
      await assert.rejects(gone, /gone/);
      clock.letGo();
      assert.equal(await call(double(2), { timeoutMs: 30_000 }), 4);
      const serving = executor.instances().filter(({ role }) => role === "serving");
      assert.notEqual(serving[0]!.id, before!.id);
    });

    test("a batch whose callers have gone is not looked into after a crash: what hangs there would hold up close()", async () => {
      const { executor, call } = await setUp(kind, { clock: impatient }, { maxBatchSize: 1 });
      const controller = new AbortController();
      const gone = call({ do: "exit-later", ms: 300 }, { signal: controller.signal });
      await until(executor, "busy");
      controller.abort(new Error("gone"));
      await assert.rejects(gone, /gone/);
      assert.equal(await call(double(2)), 4);
      assert.equal(executor.restarts, 1);
    });

    test("every instance dead at once, under load: no call is lost or answered twice", async () => {
      const { executor, call } = await setUp(kind, { instances: 2, clock: impatient }, { maxBatchSize: 8 });
      const settled = new Map<number, number>();
      const calls = Array.from({ length: 200 }, async (_, i) => {
        const outcome = await call(i === 20 || i === 30 ? { do: "exit" } : double(i)).catch((error) => error.code);
        settled.set(i, (settled.get(i) ?? 0) + 1);
        return outcome as unknown;
      });
      const results = await Promise.all(calls);
      results.forEach((result, i) => assertResult(result, i === 20 || i === 30 ? "WORKER_CRASHED" : i * 2));
      assertResult([settled.size, Math.max(...settled.values())], [200, 1]);
      assert.ok(executor.restarts >= 2, `${executor.restarts} restarts`);
      assert.deepEqual([call.stats().items.ok, call.stats().items.error], [198, 2]);
    });

    test("a hung run keeps its orderKey blocked until it has ended; other keys are served meanwhile", async (t) => {
      const { runTimeoutMs, clock } = endingWhenTold();
      const { executor, call } = await setUp(
        kind,
        { clock: impatient },
        {
          maxBatchSize: 1,
          runTimeoutMs,
          clock,
          onBatchError: "fail",
          orderKey: (item) => ("key" in item ? item.key : undefined),
        },
      );
      const ended: string[] = [];
      executor.onInstance(({ instance: { id, state } }) => state === "dead" && ended.push(`instance ${id}`));
      const block = blocked(t, "a");
      const hung = call(block);
      // A hung thread alone does not keep a program alive; a deadline does.
      const next = call({ do: "double", n: 1, key: "a" }, { timeoutMs: 60_000 });
      const isNext = next.then(() => ended.push("next of its key"));
      await until(executor, "busy");
      clock.letGo();
      await assert.rejects(hung, { code: "RUN_TIMEOUT" });
      assert.equal(await call({ do: "double", n: 2, key: "b" }), 4);
      unblock(block);
      await isNext;
      assert.deepEqual(ended.slice(0, 2), ["instance 1", "next of its key"]);
    });

    test("a batch that waits for an instance to come back, or behind a hung one, is timed from its own start", async (t) => {
      const { call } = await setUp(
        kind,
        { data: { loadMs: 3500 } },
        { onBatchError: "fail", maxBatchSize: 1, runTimeoutMs: 3000, clock: withoutPauses() },
      );
      await assert.rejects(call({ do: "exit" }), { code: "WORKER_CRASHED" });
      assert.equal(await call(double(1)), 2);
      // The second goes ahead to the instance that the first hangs in.
      const outcomes = await call.settle([blocked(t), { do: "wait", ms: 400 }]);
      assert.deepEqual(codesOf(outcomes), ["RUN_TIMEOUT", "waited"]);
      assert.equal(call.stats().abandonedRuns, 1);
    });

    test("a load that does not end within loadTimeoutMs rejects ready() and every call, and says what to do", async () => {
      const executor = kinds[kind](probeUrl, { data: { loadMs: 5000 }, loadTimeoutMs: 500 });
      const call = openBatcher(executor);
      const refusal = { code: "WORKER_CRASHED", message: /not ready after 500 ms \(loadTimeoutMs\).*raise/s };
      await assert.rejects(call.ready(), refusal);
      await assert.rejects(call(double(1)), refusal);
    });

    test("close() while a load does not end: ready() rejects with CLOSED, and nothing keeps the program alive", async () => {
      const executor = kinds[kind](probeUrl, { data: { loadMs: 60_000 }, closeTimeoutMs: 300 });
      const ready = assert.rejects(executor.ready(), { code: "CLOSED" });
      await executor.close();
      await ready;
    });

    // A hung process is killed, and so is a thread without native code.
    if (kind === "thread") {
      test("threads with native code that hang are refused with the cure, until one of them ends", async (t) => {
        const { executor, call } = await setUp(
          kind,
          { clock: impatient, data: { isNative: true } },
          { maxBatchSize: 1, runTimeoutMs: 2000, onBatchError: "fail" },
        );
        const blocks = [blocked(t), blocked(t)];
        for (const block of blocks) await assert.rejects(call(block), { code: "RUN_TIMEOUT" });
        const { outage } = executor;
        assert.deepEqual(
          [outage?.restartInMs, outage?.error.message.match(/Restart the program/)?.length],
          [undefined, 1],
        );
        await assert.rejects(call(double(1)), {
          code: "WORKER_CRASHED",
          message: /inside a run that never ends.*processes/,
        });
        unblock(blocks[0]!);
        while (executor.outage !== undefined) await sleep(10);
        assert.equal(await call(double(2)), 4);
      });

      test("close() does not wait for a hung thread beside instances that end", async (t) => {
        const { runTimeoutMs, clock } = endingWhenTold();
        const { executor, call } = await setUp(
          kind,
          { instances: 2, closeTimeoutMs: 100_000, data: { isNative: true } },
          { maxBatchSize: 1, runTimeoutMs, clock, onBatchError: "fail" },
        );
        const hung = assert.rejects(call(blocked(t)), { code: "RUN_TIMEOUT" });
        await until(executor, "busy");
        clock.letGo();
        await hung;
        assert.equal(await call(double(1)), 2);
        await executor.close();
        assert.deepEqual(
          executor.instances().map(({ role }) => role),
          ["hung"],
        );
      });
    }

    test("a restart whose load does not end counts as a crash, and the next one serves", async () => {
      const flag = `${process.pid}-${kind}-${Date.now()}`;
      const file = join(tmpdir(), `sheaf-slow-second-load-${flag}`);
      // A good load may take long on a crowded machine: the time is over when the test says so.
      const loadTimeoutMs = 20_000;
      const clock = patientFrom(loadTimeoutMs);
      const { executor, call } = await setUp(
        kind,
        { data: { slowLoad: { file, load: 2, ms: 600_000 } }, loadTimeoutMs, clock },
        { onBatchError: "fail" },
      );
      const why: string[] = [];
      executor.onInstance((event) => event.why !== undefined && why.push(event.why));
      await assert.rejects(call({ do: "exit" }), { code: "WORKER_CRASHED" });
      const next = call(double(1));
      while (statSync(file).size < 2) await sleep(10);
      clock.letGo();
      assert.equal(await next, 2);
      assert.match(why.join("\n"), /not ready after 20000 ms \(loadTimeoutMs\)/);
      assert.equal(executor.restarts, 2);
      await call.close();
      rmSync(file);
    });

    test("a worker that ends while it loads rejects ready()", async () => {
      const executor = kinds[kind]("data:text/javascript,process.exit(7)");
      await assert.rejects(executor.ready(), { code: "WORKER_CRASHED", message: /before it was ready: exit code 7/ });
      await executor.close();
    });

    test("an instance is replaced after recycleAfterBatches, and no call is lost", async () => {
      const { executor, call } = await setUp(kind, { recycleAfterBatches: 5 }, { maxBatchSize: 4 });
      const results: unknown[] = [];
      const ids = new Set<number>();
      while (ids.size < 4) {
        results.push(...(await call.many([1, 2, 3].map(double))));
        for (const { id, role } of executor.instances()) if (role === "serving") ids.add(id);
        assert.ok(executor.instances().some(({ state, role }) => role === "serving" && state !== "starting"));
      }
      assert.ok(results.every((result, i) => result === ((i % 3) + 1) * 2));
      assert.equal(executor.restarts, 0);
    });

    test("an instance past maxMemoryMb is replaced, once it has served 10 s", async () => {
      let nowMs = 0;
      const clock = { ...impatient, now: () => nowMs };
      const { executor, call } = await setUp(kind, { maxMemoryMb: 1, clock }, { maxBatchSize: 4 });
      const reasons: string[] = [];
      executor.onInstance(({ why }) => why !== undefined && reasons.push(why));
      nowMs = 9_999;
      for (let i = 0; i < 20; i++) await call(double(1));
      assert.deepEqual(reasons, []);
      nowMs = 10_000;
      while (executor.instances().every(({ id }) => id === 1)) await call(double(1));
      assert.match(reasons.join(), /being replaced after \d+ MB \(maxMemoryMb\)/);
    });
  });
}

test("kill -9 of a process mid-batch: every caller gets its result from a second attempt", async () => {
  const { executor, call } = await setUp("process", {}, { maxBatchSize: 3 });
  const records: number[] = [];
  call.subscribe(({ attempt }) => records.push(attempt));
  const results = call.many([double(1), { do: "wait", ms: 200 }, { do: "attempt" }]);
  await until(executor, "busy");
  process.kill(executor.instances()[0]!.pid!, "SIGKILL");
  assert.deepEqual(await results, [2, "waited", 2]);
  await call.close();
  assert.deepEqual(records, [2]);
});

test("a process that is stopped mid-batch is killed at runTimeoutMs, its items run again, and its successor serves", async () => {
  const { executor, call } = await setUp("process", {}, { maxBatchSize: 2, runTimeoutMs: 3000 });
  const results = call.many([double(1), { do: "wait", ms: 200 }]);
  await until(executor, "busy");
  process.kill(executor.instances()[0]!.pid!, "SIGSTOP");
  assert.deepEqual(await results, [2, "waited"]);
  assert.equal(await call(double(5)), 10);
  assert.equal(executor.restarts, 1);
});

test("every process killed at once, under load: no call is lost or answered twice", async () => {
  const { executor, call } = await setUp("process", { instances: 2 }, { maxBatchSize: 8 });
  const calls = Array.from({ length: 200 }, (_, i) => call(i % 10 === 0 ? { do: "wait", ms: 2 } : double(i)));
  await until(executor, "busy");
  for (const { pid } of executor.instances()) process.kill(pid!, "SIGKILL");
  const results = await Promise.all(calls);
  results.forEach((result, i) => assertResult(result, i % 10 === 0 ? "waited" : i * 2));
  assert.equal(call.stats().items.ok, 200);
});
