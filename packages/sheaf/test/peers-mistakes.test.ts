/** What other batching libraries and servers get wrong, each seen in their source or their issues: not here. */
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { test } from "node:test";
import { createBatcher, fixedWindow, greedy } from "../dist/index.js";
import { assertCode, heldBatcher, numbers, statuses, values, watch, watchAll } from "./support/rig.js";

test("a result array that is too short gives no caller undefined", async () => {
  const batcher = createBatcher((items: number[]) => items.slice(1), { policy: greedy() });
  const outcomes = await Promise.allSettled([1, 2, 3].map((item) => batcher(item)));
  for (const outcome of outcomes) {
    assertCode({ status: outcome.status, reason: outcome.status === "rejected" && outcome.reason }, "RESULT_COUNT");
  }
});

test("a sync throw is not an uncaught exception and hangs no caller", async (t) => {
  const uncaught = t.mock.fn();
  process.on("uncaughtExceptionMonitor", uncaught);
  process.on("unhandledRejection", uncaught);
  t.after(() => {
    process.off("uncaughtExceptionMonitor", uncaught);
    process.off("unhandledRejection", uncaught);
  });
  let runs = 0;
  const batcher = createBatcher(
    (items: number[]) => {
      if (++runs === 1) throw new Error("sync");
      return items;
    },
    { policy: greedy() },
  );
  const outcomes = await Promise.allSettled([batcher(1), batcher(2)]);
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ["rejected", "rejected"],
  );
  assert.equal(await batcher(3), 3);
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(uncaught.mock.callCount(), 0);
});

test("an Error in a place is a rejection, not a value", async () => {
  const batcher = createBatcher((items: number[]) => items.map((item) => (item === 2 ? new Error("2") : item)), {
    policy: greedy(),
  });
  const outcomes = await Promise.allSettled([1, 2, 3].map((item) => batcher(item)));
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled"],
  );
});

test("maxWaitMs is not a debounce: a steady stream does not starve its first item", async () => {
  const { batcher, clock, runs } = heldBatcher({ policy: fixedWindow(), maxWaitMs: 10, maxBatchSize: 1_000 });
  const startedAtMs = clock.now();
  for (let item = 0; item < 50 && runs.length === 0; item++) {
    watchAll(batcher, [item]);
    await clock.advanceAsync(1);
  }
  assert.equal(runs[0]!.startedAtMs - startedAtMs, 10);
});

test("neither the first nor the last caller's async context leaks into the batch", async () => {
  const storage = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const batcher = createBatcher(
    async (items: number[]) => {
      seen.push(storage.getStore());
      return items;
    },
    { policy: fixedWindow(), maxWaitMs: 2, maxBatchSize: 3 },
  );
  const call = (name: string): Promise<number> => storage.run(name, () => batcher(1));
  await Promise.all([call("first"), call("middle"), call("last")]);
  await call("by timer");
  assert.deepEqual(seen, [undefined, undefined]);
});

test("cancelling one of six hangs no other", async () => {
  const { batcher, clock, finishAll } = heldBatcher({ policy: fixedWindow(), maxWaitMs: 10, maxBatchSize: 3 });
  for (const cancelled of numbers(6)) {
    const controllers = numbers(6).map(() => new AbortController());
    const calls = controllers.map(({ signal }, item) => watch(batcher(item, { signal })));
    controllers[cancelled]!.abort();
    await clock.advanceAsync(10);
    await finishAll();
    await clock.advanceAsync(10);
    await finishAll();
    assert.deepEqual(
      statuses(calls),
      numbers(6).map((item) => (item === cancelled ? "rejected" : "fulfilled")),
      `cancelled ${cancelled}`,
    );
  }
});

test("one exception of the model does not stop the batches after it", async () => {
  const { batcher, clock, runs, finishAll } = heldBatcher({ maxBatchSize: 1 });
  const calls = watchAll(batcher, numbers(10));
  await clock.settle();
  await runs[0]!.fail(new Error("model exception"));
  await runs[1]!.fail(undefined);
  await finishAll();
  assert.deepEqual(values(calls).slice(2), numbers(8, 2));
  assert.deepEqual(batcher.stats().items, { ok: 8, error: 2, timeout: 0, aborted: 0, rejected: 0 });
});

test("a throwing size function hangs no later request", async () => {
  const { batcher, finishAll } = heldBatcher<string>({
    weigh: (item) => {
      if (item === "bad") throw new Error("no size");
      return item.length;
    },
    maxBatchWeight: 8,
  });
  const calls = watchAll(batcher, ["good", "bad", "fine", "more"]);
  await finishAll();
  const later = watch(batcher("late"));
  await finishAll();
  assert.deepEqual(statuses(calls), ["fulfilled", "rejected", "fulfilled", "fulfilled"]);
  assert.equal(later.value, "late");
});

test("one bad item does not fail everyone: with bisect the others get their results", async () => {
  const batcher = createBatcher(
    (items: number[]) => {
      if (items.includes(5)) throw new Error("5 is bad");
      return items;
    },
    { policy: greedy(), onBatchError: "bisect" },
  );
  const outcomes = await Promise.allSettled(numbers(16).map((item) => batcher(item)));
  assert.deepEqual(
    outcomes.map(({ status }) => status === "rejected"),
    numbers(16).map((item) => item === 5),
  );
});

test("cancelled work is not computed, and a batch without callers is aborted", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({ maxBatchSize: 2 });
  const controller = new AbortController();
  watchAll(batcher, [1, 2, 3], { signal: controller.signal });
  watchAll(batcher, [4]);
  await clock.settle();
  controller.abort();
  await clock.settle();
  assert.equal(runs[0]!.context.signal.aborted, true);
  await runs[0]!.finish();
  assert.deepEqual(batches(), [[1, 2], [4]]);
});
