import assert from "node:assert/strict";
import { test } from "node:test";
import { BatcherError, type BatcherOptions, type BatchRecord, createBatcher, greedy } from "../../dist/index.js";
import { manualClock } from "../../dist/testing/index.js";
import { assertCode, heldBatcher, numbers, statuses, values, watch, watchAll } from "../support/rig.js";

/** A batch function that fails whenever one of the bad items is in its batch. */
function badItems(bad: Iterable<number>, options: BatcherOptions<number, number> = {}) {
  const clock = manualClock();
  const badOnes = new Set(bad);
  const runs: number[][] = [];
  const batcher = createBatcher<number, number>(
    async (items) => {
      runs.push([...items]);
      const found = items.find((item) => badOnes.has(item));
      if (found !== undefined) throw new Error(`item ${found} is bad`);
      return items.map((item) => item * 2);
    },
    { clock, policy: greedy(), concurrency: 1, maxBatchSize: 1_000, onBatchError: "bisect", ...options },
  );
  return { batcher, clock, runs };
}

const bound = (size: number): number => 8 * Math.ceil(Math.log2(size));

test("bisection: exactly the bad items fail, for 1 to 4 of them in batches of 2 to 200", async () => {
  let seed = 1;
  const random = (): number => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
  for (const size of [2, 3, 5, 8, 13, 31, 32, 33, 64, 100, 200]) {
    for (let badCount = 1; badCount <= Math.min(4, size); badCount++) {
      for (let round = 0; round < 4; round++) {
        const bad = new Set<number>();
        while (bad.size < badCount) bad.add(Math.floor(random() * size));
        const { batcher, clock, runs } = badItems(bad);
        const calls = watchAll(batcher, numbers(size));
        await clock.settle();
        const context = `size ${size}, bad ${[...bad].join(" ")}`;
        assert.deepEqual(
          statuses(calls),
          numbers(size).map((item) => (bad.has(item) ? "rejected" : "fulfilled")),
          context,
        );
        for (const item of bad) assert.equal((calls[item]!.reason as Error).message, `item ${item} is bad`, context);
        assert.ok(runs.length - 1 <= bound(size), `${context}: ${runs.length - 1} extra runs`);
        assert.equal(batcher.stats().bisectRuns, runs.length - 1, context);
      }
    }
  }
});

test("every good item gets its own result though the batch was cut", async () => {
  const { batcher, clock } = badItems([3]);
  const calls = watchAll(batcher, numbers(8));
  await clock.settle();
  assert.deepEqual(values(calls), [0, 2, 4, undefined, 8, 10, 12, 14]);
});

test("beyond the bound of extra runs what is left gets the batch's error and everyone settles", async () => {
  const { batcher, clock, runs } = badItems(numbers(64));
  const calls = watchAll(batcher, numbers(64));
  await clock.settle();
  assert.ok(statuses(calls).every((status) => status === "rejected"));
  assert.ok(runs.length - 1 <= bound(64), `${runs.length - 1}`);
});

test("a bisection makes 8·⌈log2 n⌉ extra runs, neither fewer nor more, when it could use more", async () => {
  for (const size of [33, 64, 65, 100, 200, 257]) {
    const { batcher, clock, runs } = badItems(numbers(size));
    watchAll(batcher, numbers(size));
    await clock.settle();
    assert.equal(runs.length - 1, bound(size), `size ${size}`);
  }
});

test("maxBisectRuns bounds the extra runs; 0 means none", async () => {
  for (const maxBisectRuns of [0, 1, 2, 5]) {
    const { batcher, clock, runs } = badItems([7], { maxBisectRuns });
    const calls = watchAll(batcher, numbers(32));
    await clock.settle();
    assert.ok(runs.length - 1 <= maxBisectRuns, `${runs.length - 1} extra runs, allowed ${maxBisectRuns}`);
    assert.ok(calls.every(({ status }) => status !== "pending"));
    assert.equal(calls[7]!.status, "rejected");
  }
});

test("a bisection's halves run left then right, in the slot that the batch had", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({ onBatchError: "bisect", maxBatchSize: 4, concurrency: 1 });
  watchAll(batcher, [1, 2, 3, 4]);
  await clock.settle();
  watchAll(batcher, [5]);
  await runs[0]!.fail(new Error("bad batch"));
  assert.deepEqual(batches(), [
    [1, 2, 3, 4],
    [1, 2],
  ]);
  assert.equal(batcher.stats().inFlight, 1);
  await runs[1]!.finish();
  assert.deepEqual(batches().at(-1), [3, 4]);
  await runs[2]!.finish();
  assert.deepEqual(batches().at(-1), [5]);
});

test("callers of a half that succeeded do not wait for the other half", async () => {
  const { batcher, clock, runs } = heldBatcher({ onBatchError: "bisect", maxBatchSize: 4 });
  const calls = watchAll(batcher, [1, 2, 3, 4]);
  await clock.settle();
  await runs[0]!.fail(new Error("bad batch"));
  await runs[1]!.finish();
  assert.deepEqual(statuses(calls), ["fulfilled", "fulfilled", "pending", "pending"]);
});

test("sub-runs carry the id of their batch and their own size", async () => {
  const { batcher, clock, runs } = heldBatcher({ onBatchError: "bisect", maxBatchSize: 4 });
  watchAll(batcher, [1, 2, 3, 4]);
  await clock.settle();
  await runs[0]!.fail(new Error("bad batch"));
  assert.equal(runs[1]!.context.batchId, runs[0]!.context.batchId);
  assert.equal(runs[1]!.context.size, 2);
});

test("aborted and expired items are left out of the sub-runs", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({ onBatchError: "bisect", maxBatchSize: 4 });
  const controller = new AbortController();
  watchAll(batcher, [1]);
  const aborted = watch(batcher(2, { signal: controller.signal }));
  watchAll(batcher, [3]);
  const expired = watch(batcher(4, { timeoutMs: 50 }));
  await clock.settle();
  controller.abort();
  await clock.advanceAsync(50);
  assertCode(expired, "TIMEOUT");
  assert.equal(aborted.status, "rejected");
  await runs[0]!.fail(new Error("bad batch"));
  await runs[1]!.finish();
  for (const run of runs.slice(2)) await run.finish();
  assert.deepEqual(
    batches()
      .slice(1)
      .flat()
      .sort((a, b) => a - b),
    [1, 3],
  );
});

test("the lone item that a bisection isolated uses runOne", async () => {
  const ones: number[] = [];
  const { batcher, clock } = badItems([3], {
    runOne: (item, context) => {
      ones.push(item);
      assert.equal(context.size, 1);
      return item === 3 ? -3 : item * 2;
    },
  });
  const calls = watchAll(batcher, numbers(8));
  await clock.settle();
  assert.ok(ones.includes(3));
  assert.equal(calls[3]!.value, -3);
  assert.ok(statuses(calls).every((status) => status === "fulfilled"));
});

test("runOne may throw, reject or give an Error: that is the item's outcome", async () => {
  for (const how of ["throw", "reject", "give"] as const) {
    const own = new Error(`runOne ${how}`);
    const { batcher, clock } = badItems([1], {
      runOne: (item) => {
        if (item !== 1) return item * 2;
        if (how === "throw") throw own;
        return how === "reject" ? Promise.reject(own) : own;
      },
    });
    const calls = watchAll(batcher, numbers(4));
    await clock.settle();
    assert.equal(calls[1]!.reason, own, how);
    assert.deepEqual(statuses(calls), ["fulfilled", "rejected", "fulfilled", "fulfilled"]);
  }
});

test("an error with an integer itemIndex takes that item out first", async () => {
  const { batcher, clock, runs, batches } = heldBatcher({ onBatchError: "bisect", maxBatchSize: 8 });
  const calls = watchAll(batcher, numbers(8));
  await clock.settle();
  const bad = Object.assign(new Error("input[5] is bad"), { itemIndex: 5 });
  await runs[0]!.fail(bad);
  for (let run = 1; run < runs.length; run++) await runs[run]!.finish();
  assert.equal(
    batches()
      .slice(1)
      .filter((batch) => batch.includes(5))
      .every((batch) => batch.length === 1),
    true,
    JSON.stringify(batches()),
  );
  assert.ok(
    batches().some((batch) => batch.length === 7),
    JSON.stringify(batches()),
  );
  assert.ok(numbers(8).every((item) => item === 5 || calls[item]!.status === "fulfilled"));
});

test("an itemIndex out of range or no integer is ignored", async () => {
  for (const itemIndex of [-1, 8, 99, 1.5, "2", Number.NaN]) {
    const runs: number[][] = [];
    const batcher = createBatcher<number, number>(
      async (items) => {
        runs.push([...items]);
        if (items.includes(2)) throw Object.assign(new Error("2 is bad"), { itemIndex });
        return items;
      },
      { policy: greedy(), onBatchError: "bisect" },
    );
    const outcomes = await Promise.allSettled(numbers(8).map((item) => batcher(item)));
    assert.deepEqual(
      outcomes.map(({ status }) => status === "rejected"),
      numbers(8).map((item) => item === 2),
      String(itemIndex),
    );
  }
});

const serviceErrors: [string, unknown][] = [
  ["an AbortError", new DOMException("aborted", "AbortError")],
  ["an error with retryAfterMs", Object.assign(new Error("come back"), { retryAfterMs: 1 })],
  ["a worker that cannot be started", new BatcherError("WORKER_CRASHED", "gone", { isOfItem: false })],
  ["RESULT_COUNT", new BatcherError("RESULT_COUNT", "1 for 2")],
  ...[401, 403, 408, 429, 500, 502, 503, 529].map((status): [string, unknown] => [
    `status ${status}`,
    Object.assign(new Error(`HTTP ${status}`), { status }),
  ]),
  ...["ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EPIPE", "ENOTFOUND"].map((code): [string, unknown] => [
    code,
    Object.assign(new Error(code), { code }),
  ]),
  ["a failed fetch", new TypeError("fetch failed", { cause: Object.assign(new Error(), { code: "ECONNREFUSED" }) })],
];
for (const [what, error] of serviceErrors) {
  test(`${what} is the service, not an item: no bisection, every caller gets that error`, async () => {
    const { batcher, clock, runs } = heldBatcher({ onBatchError: "bisect" });
    const calls = watchAll(batcher, [1, 2, 3, 4]);
    await clock.settle();
    await runs[0]!.fail(error);
    assert.equal(runs.length, 1);
    for (const call of calls) assert.equal(call.reason, error);
  });
}

for (const status of [400, 404, 413, 422]) {
  test(`status ${status} can be an item's fault: it is bisected`, async () => {
    const { batcher, clock, runs } = heldBatcher({ onBatchError: "bisect" });
    watchAll(batcher, [1, 2, 3, 4]);
    await clock.settle();
    await runs[0]!.fail(Object.assign(new Error(`HTTP ${status}`), { status }));
    assert.equal(runs.length, 2);
  });
}

for (const cause of [null, undefined, "ECONNREFUSED", new Error("a bad item")]) {
  test(`an error with the cause ${String(cause)} can be an item's fault: it is bisected`, async () => {
    const { batcher, clock, runs } = heldBatcher({ onBatchError: "bisect" });
    watchAll(batcher, [1, 2, 3, 4]);
    await clock.settle();
    await runs[0]!.fail(Object.assign(new Error("failed"), { cause }));
    assert.equal(runs.length, 2);
  });
}

test("a wrong number of results is RESULT_COUNT for every caller and is not bisected", async () => {
  const { batcher, clock, runs } = heldBatcher({ onBatchError: "bisect" });
  const calls = watchAll(batcher, [1, 2]);
  await clock.settle();
  await runs[0]!.finish([1]);
  assert.equal(runs.length, 1);
  for (const call of calls) assertCode(call, "RESULT_COUNT");
});

test("shouldBisect decides, whatever the error is", async () => {
  const asked: unknown[] = [];
  for (const answer of [true, false]) {
    const { batcher, clock, runs } = heldBatcher({
      onBatchError: "bisect",
      shouldBisect: (error) => {
        asked.push(error);
        return answer;
      },
    });
    watchAll(batcher, [1, 2]);
    await clock.settle();
    const busy = Object.assign(new Error("busy"), { status: 503 });
    await runs[0]!.fail(busy);
    assert.equal(asked.at(-1), busy);
    assert.equal(runs.length, answer ? 2 : 1);
  }
});

test("a throwing shouldBisect never hangs a caller: everyone gets the batch's error, and there is one warning", async (t) => {
  const warn = t.mock.method(console, "warn", () => {});
  const { batcher, clock, runs, finishAll } = heldBatcher({
    onBatchError: "bisect",
    shouldBisect: () => {
      throw new Error("bug");
    },
  });
  for (let round = 0; round < 2; round++) {
    const calls = watchAll(batcher, [1, 2]);
    await clock.settle();
    const bad = new Error("bad");
    await runs[round]!.fail(bad);
    await finishAll();
    for (const call of calls) assert.equal(call.reason, bad);
  }
  assert.equal(warn.mock.callCount(), 1);
});

test("a service error inside a bisection ends it for that half, not forever", async () => {
  const { batcher, clock, runs } = heldBatcher({ onBatchError: "bisect", maxBatchSize: 8 });
  const calls = watchAll(batcher, numbers(8));
  await clock.settle();
  await runs[0]!.fail(new Error("some item is bad"));
  const busy = Object.assign(new Error("busy"), { status: 503 });
  await runs[1]!.fail(busy);
  for (let run = 2; run < runs.length; run++) await runs[run]!.finish();
  assert.ok(calls.every(({ status }) => status !== "pending"));
  for (const call of calls.slice(0, 4)) assert.equal(call.status, "rejected");
});

test("with onBatchError fail nothing is repeated", async () => {
  const { batcher, clock, runs } = heldBatcher();
  const calls = watchAll(batcher, [1, 2, 3, 4]);
  await clock.settle();
  const bad = new Error("bad");
  await runs[0]!.fail(bad);
  assert.equal(runs.length, 1);
  for (const call of calls) assert.equal(call.reason, bad);
  assert.equal(batcher.stats().bisectRuns, 0);
});

test("sub-runs feed bisectRuns, not the policy and not the subscribers", async () => {
  const observed: number[] = [];
  const { batcher, clock } = badItems([3], {
    policy: {
      name: "watcher",
      decide: ({ waiting }) => ({ run: waiting }),
      observe: ({ size }) => observed.push(size),
    },
  });
  const records: number[] = [];
  batcher.subscribe(({ size }) => records.push(size));
  watchAll(batcher, numbers(8));
  await clock.settle();
  assert.deepEqual(observed, [8]);
  assert.deepEqual(records, [8]);
  assert.equal(batcher.stats().batches, 1);
  assert.ok(batcher.stats().bisectRuns >= 4);
});

test("a bisected batch of one is not repeated without runOne", async () => {
  const { batcher, clock, runs } = heldBatcher({ onBatchError: "bisect" });
  const call = watch(batcher(1));
  await clock.settle();
  const bad = new Error("bad");
  await runs[0]!.fail(bad);
  assert.equal(call.reason, bad);
  assert.equal(runs.length, 1);
});

/** A table with bad rows, whose statement takes 50 ms and as long again for each 500 rows. */
function table(bad: (row: number) => boolean, options: BatcherOptions<number, number> = {}) {
  const clock = manualClock();
  const records: BatchRecord[] = [];
  let runs = 0;
  const batcher = createBatcher<number, number>(
    (rows) =>
      new Promise((resolve, reject) => {
        runs++;
        clock.after(50 + rows.length / 10, () => (rows.some(bad) ? reject(new Error("bad row")) : resolve([...rows])));
      }),
    { clock, policy: greedy(), maxBatchSize: 500, onBatchError: "bisect", ...options },
  );
  batcher.subscribe((record) => records.push(record));
  return { batcher, clock, records, runs: () => runs };
}

test("a bisected batch is recorded once, at its last result: what failed, what was run again, and how long all took", async () => {
  const { batcher, clock, records, runs } = table((row) => row === 7);
  watchAll(batcher, numbers(32));
  await clock.advanceAsync(500);
  assert.equal(records.length, 0);
  await clock.advanceAsync(200);
  assert.equal(runs(), 11);
  const { outcome, size, failedItems, extraRuns, runMs, tookMs, queueWaitMs } = records[0]!;
  // 32 rows, 16 with the bad one, then 8, 4, 2 and 1 of either side.
  assert.deepEqual([records.length, outcome, size, failedItems, extraRuns], [1, "partial", 32, 1, 10]);
  const rows = 32 + 2 * (16 + 8 + 4 + 2 + 1);
  assert.ok(Math.abs(runMs - (11 * 50 + rows / 10)) < 0.001, `${runMs}`);
  assert.deepEqual([tookMs, queueWaitMs.max], [runMs, 0]);
  assert.equal(batcher.stats().runMs.max, runMs);
});

test("what a searched batch waits for the turns of others is not its run time", async () => {
  const { batcher, clock, records, runs } = table((row) => row === 7, { maxBatchSize: 32, concurrency: 1 });
  watchAll(batcher, numbers(320));
  await clock.advanceAsync(20_000);
  const ofRuns = records.reduce((sum, { runMs }) => sum + runMs, 0);
  assert.equal(records.length, 10);
  const rows = 320 + 2 * (16 + 8 + 4 + 2 + 1);
  assert.ok(Math.abs(ofRuns - (50 * runs() + rows / 10)) < 0.001, `${ofRuns}`);
});

test("where no item passes, the record says error, with the runs that were spent and their time", async () => {
  const { batcher, clock, records, runs } = table(() => true);
  watchAll(batcher, numbers(4));
  await clock.advanceAsync(1000);
  const { outcome, failedItems, extraRuns, runMs } = records[0]!;
  assert.deepEqual([outcome, failedItems, extraRuns], ["error", 4, runs() - 1]);
  assert.ok(runMs > 50 * runs(), `${runMs}`);
});

test("18 bad rows of 5,000: the records count them, and the parts that passed make a verdict", async () => {
  const { batcher, clock, records } = table((row) => row % 278 === 77, { concurrency: 2 });
  for (let from = 0; from < 5000; from += 250) {
    watchAll(batcher, numbers(5000).slice(from, from + 250));
    await clock.advanceAsync(700);
  }
  await clock.advanceAsync(20_000);
  const sum = (of: (record: BatchRecord) => number): number => records.reduce((total, record) => total + of(record), 0);
  const stats = batcher.stats();
  assert.deepEqual([sum(({ size }) => size), sum(({ failedItems }) => failedItems), stats.items.ok], [5000, 18, 4982]);
  assert.equal(
    sum(({ extraRuns }) => extraRuns),
    stats.bisectRuns,
  );
  assert.deepEqual([...new Set(records.map(({ outcome }) => outcome))].sort(), ["ok", "partial"]);
  assert.equal(stats.verdict.verdict, "gains");
  assert.ok(Math.abs(stats.costModel!.fixedMs - 50) < 2, `${stats.costModel!.fixedMs}`);
  assert.ok(Math.abs(stats.costModel!.perItemMs - 0.1) < 0.02, `${stats.costModel!.perItemMs}`);
});

test("bad rows do not lower the number of batches in flight; failed batches do", async () => {
  const { batcher, clock } = table((row) => row % 50 === 7, { maxBatchSize: 50 });
  watchAll(batcher, numbers(5000));
  await clock.advanceAsync(60_000);
  const { concurrency, items } = batcher.stats();
  assert.deepEqual(items, { ok: 4900, error: 100, timeout: 0, aborted: 0, rejected: 0 });
  assert.notEqual(concurrency!.cause, "failure");
});

test("the rest of a bisected batch that goes back to the queue is recorded as refused", async () => {
  const { batcher, clock, runs } = heldBatcher({ onBatchError: "bisect", maxBatchSize: 4 });
  const records: BatchRecord[] = [];
  batcher.subscribe((record) => records.push(record));
  watchAll(batcher, [1, 2, 3, 4]);
  await clock.settle();
  await runs[0]!.fail(new Error("bad batch"));
  await runs[1]!.finish();
  runs[2]!.context.putBack();
  await runs[2]!.fail(new Error("busy"));
  await runs[3]!.finish();
  assert.deepEqual(
    records.map(({ outcome, size, failedItems, extraRuns }) => [outcome, size, failedItems, extraRuns]),
    [
      ["refused", 4, 0, 2],
      ["ok", 2, 0, 0],
    ],
  );
});

test("a batch that fails after early answers is recorded as partial", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 4 });
  const records: BatchRecord[] = [];
  batcher.subscribe((record) => records.push(record));
  watchAll(batcher, [1, 2, 3, 4]);
  await clock.settle();
  runs[0]!.context.answer(0, 1);
  runs[0]!.context.answer(1, new Error("bad"));
  await runs[0]!.fail(new Error("the rest"));
  assert.deepEqual([records[0]!.outcome, records[0]!.failedItems, records[0]!.extraRuns], ["partial", 3, 0]);
});
