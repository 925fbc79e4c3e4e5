import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { test } from "node:test";
import { type Batcher, createBatcher, fixedWindow, greedy } from "../../dist/index.js";
import { manualClock } from "../../dist/testing/index.js";
import { heldBatcher, numbers, watch, watchAll } from "../support/rig.js";

const storage = new AsyncLocalStorage<string>();

/** A batcher made in the context "maker" that notes in which context its batches run. */
function noting(options: Parameters<typeof createBatcher<number, number>>[1] = {}) {
  const seen: (string | undefined)[] = [];
  const batcher = storage.run("maker", () =>
    createBatcher<number, number>(
      async (items) => {
        seen.push(storage.getStore());
        await Promise.resolve();
        seen.push(storage.getStore());
        return items;
      },
      { policy: greedy(), ...options },
    ),
  );
  return { batcher, seen };
}

test("the batch function runs in the context of createBatcher, never a caller's", async () => {
  const { batcher, seen } = noting();
  await Promise.all(["first", "second"].map((name) => storage.run(name, () => batcher(1))));
  await storage.run("third", () => batcher(3));
  assert.deepEqual(new Set(seen), new Set(["maker"]));
});

test("that holds for batches that a full batch, a finished one, a timer, a flush or an immediate item started", async () => {
  const { batcher, seen } = noting({ policy: fixedWindow(), maxWaitMs: 3, maxBatchSize: 2, concurrency: 1 });
  await Promise.all(["a", "b", "c", "d", "e"].map((name, item) => storage.run(name, () => batcher(item))));
  await storage.run("timed", () => batcher(5));
  await storage.run("flusher", () => Promise.all([batcher(6), batcher.flush()]));
  const controller = new AbortController();
  const gone = storage.run("gone", () => watch(batcher(7, { signal: controller.signal })));
  storage.run("aborter", () => controller.abort());
  await storage.run("urgent", () => batcher(8, { priority: "immediate" }));
  assert.equal(gone.status, "rejected");
  assert.equal(seen.length, 2 * 6);
  assert.deepEqual(new Set(seen), new Set(["maker"]));
});

test("runs of bisections and of lists are in the maker's context too", async () => {
  const seen: (string | undefined)[] = [];
  const batcher = storage.run("maker", () =>
    createBatcher<number, number>(
      async (items) => {
        seen.push(storage.getStore());
        if (items.includes(3)) throw new Error("3 is bad");
        return items;
      },
      { policy: greedy(), onBatchError: "bisect", maxQueueSize: 4, maxBatchSize: 4 },
    ),
  );
  await storage.run("lister", () => batcher.settle(numbers(30)));
  assert.ok(seen.length > 8);
  assert.deepEqual(new Set(seen), new Set(["maker"]));
});

test("a batcher made outside of any context runs its batches outside of any", async () => {
  const seen: unknown[] = [];
  const batcher = createBatcher(
    (items: number[]) => {
      seen.push(storage.getStore());
      return items;
    },
    { policy: greedy() },
  );
  await storage.run("caller", () => batcher(1));
  assert.deepEqual(seen, [undefined]);
});

test("in workerd, where work ends with its request, a batch runs in the context of the call that caused it", async (t) => {
  const own = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  t.after(() => {
    if (own === undefined) Reflect.deleteProperty(globalThis, "navigator");
    else Object.defineProperty(globalThis, "navigator", own);
  });
  Object.defineProperty(globalThis, "navigator", {
    configurable: true,
    value: { userAgent: "Cloudflare-Workers" },
  });
  const { batcher, seen } = noting();
  for (const request of ["first", "second"]) await storage.run(request, () => Promise.all([batcher(1), batcher(2)]));
  assert.deepEqual(seen, ["first", "first", "second", "second"]);
});

test("every caller keeps its own AsyncLocalStorage after await, also when the call failed", async () => {
  const { batcher, clock, runs } = heldBatcher();
  const kept: (string | undefined)[] = [];
  const callers = ["a", "b", "c"].map((name, item) =>
    storage.run(name, async () => {
      await batcher(item).catch(() => {});
      kept[item] = storage.getStore();
    }),
  );
  await clock.settle();
  await runs[0]!.finish([1, new Error("b fails"), 3]);
  await Promise.all(callers);
  assert.deepEqual(kept, ["a", "b", "c"]);
});

test("key functions run in the caller's own turn", async () => {
  const seen: unknown[] = [];
  const { batcher, finishAll } = heldBatcher({
    groupKey: () => {
      seen.push(storage.getStore());
      return 1;
    },
  });
  storage.run("caller", () => watch(batcher(1)));
  await finishAll();
  assert.deepEqual(seen, ["caller"]);
});

test("a call from inside the batch function waits like any other", async () => {
  const clock = manualClock();
  const batches: number[][] = [];
  let inner: ReturnType<typeof watch<number>> | undefined;
  const batcher = createBatcher<number, number>(
    (items) => {
      batches.push([...items]);
      if (items.includes(1)) inner = watch(batcher(2));
      return items;
    },
    { clock, policy: greedy(), concurrency: 1 },
  );
  const outer = watch(batcher(1));
  await clock.settle();
  assert.equal(outer.value, 1);
  assert.equal(inner?.value, 2);
  assert.deepEqual(batches, [[1], [2]]);
});

test("a call that its own batch awaits does not hang while another slot is free", async () => {
  const clock = manualClock();
  const batcher: Batcher<number, number> = createBatcher<number, number>(
    async (items) => (items.includes(1) ? [(await batcher(2)) * 10] : items),
    { clock, policy: greedy(), concurrency: 2 },
  );
  const outer = watch(batcher(1));
  await clock.settle();
  assert.equal(outer.value, 20);
});

test("a batcher without progress for 10 s warns once and says which one", async (t) => {
  const warn = t.mock.method(console, "warn", () => {});
  const { batcher, clock, runs } = heldBatcher({ name: "stuck", maxBatchSize: 1 });
  watchAll(batcher, [1, 2]);
  await clock.advanceAsync(9_900);
  assert.equal(warn.mock.callCount(), 0);
  await clock.advanceAsync(200_000);
  assert.equal(warn.mock.callCount(), 1);
  assert.match(String(warn.mock.calls[0]!.arguments[0]), /stuck/);
  for (const run of runs) await run.finish();
});

test("where every running batch has called its own batcher, it warns after one second", async (t) => {
  const warn = t.mock.method(console, "warn", () => {});
  const clock = manualClock();
  const batcher: Batcher<number, number> = createBatcher<number, number>(
    async (items) => [(await batcher(items[0]! + 1)) * 10],
    { clock, name: "recursive", policy: greedy(), concurrency: 3, maxBatchSize: 1 },
  );
  watch(batcher(1));
  await clock.advanceAsync(990);
  assert.equal(warn.mock.callCount(), 0);
  await clock.advanceAsync(20);
  assert.match(
    String(warn.mock.calls[0]!.arguments[0]),
    /^recursive: no progress for 1 s.*Every running batch has called/,
  );
  await clock.advanceAsync(60_000);
  assert.equal(warn.mock.callCount(), 1);
});

test("where one running batch has not called it, or all go on, one second is no reason to warn", async (t) => {
  const warn = t.mock.method(console, "warn", () => {});
  const clock = manualClock();
  const batcher: Batcher<number, number> = createBatcher<number, number>(
    async ([item]) => {
      if (item! < 100) void batcher(item! + 1);
      if (item! < 100) await new Promise<void>((resolve) => clock.after(900, resolve));
      else await new Promise<void>((resolve) => clock.after(5000, resolve));
      return [item!];
    },
    { clock, policy: greedy(), concurrency: 2, maxBatchSize: 1 },
  );
  void batcher(100);
  void batcher(1);
  await clock.advanceAsync(8_000);
  assert.equal(warn.mock.callCount(), 0);
});

test("a batcher that makes progress, or is idle, or only holds, does not warn", async (t) => {
  const warn = t.mock.method(console, "warn", () => {});
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 1 });
  watchAll(batcher, numbers(5));
  for (let run = 0; run < 5; run++) {
    await clock.advanceAsync(8_000);
    await runs[run]!.finish();
  }
  await clock.advanceAsync(60_000);
  assert.equal(warn.mock.callCount(), 0);
});
