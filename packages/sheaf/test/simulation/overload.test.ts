import assert from "node:assert/strict";
import { test } from "node:test";
import { BatcherError, createBatcher, fixedWindow, greedy } from "../../dist/index.js";
import { queueBound } from "../../dist/core/measure/expected-latency.js";
import { LearnedCost } from "../../dist/core/measure/learned-cost.js";
import { manualClock, virtualClock } from "../../dist/testing/index.js";
import { simulate } from "../../dist/tuning/index.js";
import { inProof } from "../support/seeds.js";

const cost = { fixedMs: 10, perItemMs: 0.3 };
const capacityPerS = (1000 * 32) / 19.6;

for (const maxQueueSize of ["auto", 10_000] as const) {
  for (const load of inProof([1.2, 2, 4], [2])) {
    const queue = maxQueueSize === "auto" ? "a queue bounded by Little's law" : "a long queue";
    test(`${load} times too much, 100 ms to answer, ${queue}: goodput is at least 0.95 of capacity`, async () => {
      const { throughputPerS, latencyMs, items } = await simulate({
        arrivals: { pattern: "poisson", ratePerS: load * capacityPerS },
        cost,
        concurrency: 1,
        timeoutMs: 100,
        maxQueueSize,
        items: 15_000,
      });
      const share = throughputPerS / capacityPerS;
      assert.ok(share >= 0.95, `goodput ${share.toFixed(3)} of capacity, ${JSON.stringify(items)}`);
      assert.ok(latencyMs.max <= 100 + 1e-9);
    });
  }
}

test("one run that takes ten times as long: traffic recovers within 5 batches", async () => {
  const clock = virtualClock();
  let runs = 0;
  const okByRun: number[] = [];
  const batcher = createBatcher<number, number>(
    async (items) => {
      const run = runs++;
      await clock.sleep((10 + 0.3 * items.length) * (run === 50 ? 10 : 1));
      okByRun[run] = 0;
      return items.map(() => run);
    },
    { clock, concurrency: 1, timeoutMs: 60 },
  );
  let dropped = 0;
  for (let i = 0; i < 3000; i++) {
    clock.at(
      i * 1,
      () =>
        void batcher(i).then(
          (run) => okByRun[run]!++,
          () => dropped++,
        ),
    );
  }
  await clock.idle();
  const usual = okByRun.slice(30, 50).reduce((sum, ok) => sum + ok, 0) / 20;
  const after = okByRun.slice(51, 56);
  assert.ok(usual > 8, `${usual} a batch`);
  assert.ok(okByRun[50] === 0, "the slow one was late for everybody");
  assert.ok(Math.max(...after) >= 0.9 * usual, `batches after the slow one: ${after.join()}; usually ${usual}`);
  assert.ok(dropped < 200, `${dropped} dropped`);
});

test("a slow spell over, large batches are believed to be fast again", async () => {
  const spell = (nowMs: number): number => (nowMs > 2000 && nowMs < 6000 ? 8 : 1);
  const slow = (size: number, nowMs: number): number => (10 + 0.3 * size) * spell(nowMs);
  for (const pattern of ["poisson", "periodic"] as const) {
    const arrivals = { pattern, ratePerS: 1000 };
    const { items, durationMs } = await simulate({
      arrivals,
      cost: slow,
      concurrency: 1,
      timeoutMs: 60,
      items: 16_000,
    });
    // 4 s of 16 are lost to the spell; half a second more to learn that it came and that it went.
    assert.ok(items.ok >= 0.95 * (durationMs - 4500), `${pattern}: ${JSON.stringify(items)}`);
  }
});

test("with run times known, no hold lasts past a deadline: a window longer than the timeout ends in time", async () => {
  // Four full batches show what a run takes; then 5 ms between calls, in a window that no call could outlive.
  const atMs = Array.from({ length: 2000 }, (_, i) => (i < 128 ? 100 * Math.floor(i / 32) : 5 * i));
  const { items, latencyMs, reasons } = await simulate({
    arrivals: { pattern: "trace", atMs },
    cost,
    concurrency: 1,
    policy: fixedWindow(),
    maxWaitMs: 500,
    timeoutMs: 100,
  });
  assert.ok(items.ok >= 1980, JSON.stringify(items));
  assert.ok(latencyMs.p99 > 60, "it still holds");
  assert.ok(reasons.hold! > 50, JSON.stringify(reasons));
});

test("what cannot be done in time is dropped before its deadline, and says so; the last one always runs", async () => {
  const clock = manualClock();
  const sizes: number[] = [];
  const batcher = createBatcher<number, number>(
    async (items) => {
      sizes.push(items.length);
      await new Promise<void>((resolve) => void clock.after(10, resolve));
      return items;
    },
    { clock, concurrency: 1, policy: greedy() },
  );
  for (let i = 0; i < 20; i++) {
    const call = batcher(i, { timeoutMs: 1000 });
    await clock.advanceAsync(15);
    assert.equal(await call, i);
  }
  sizes.length = 0;
  const running = batcher(0, { timeoutMs: 1000 });
  await clock.settle();
  const late = [batcher(1, { timeoutMs: 18 }), batcher(2, { timeoutMs: 18 }), batcher(3, { timeoutMs: 18 })];
  const settled = Promise.allSettled(late);
  await clock.advanceAsync(10);
  assert.deepEqual(sizes, [1, 1], "the youngest runs alone");
  await clock.advanceAsync(30);
  assert.equal(await running, 0);
  const [first, second, third] = await settled;
  for (const outcome of [first, second]) {
    assert.equal(outcome!.status, "rejected");
    const { reason } = outcome as PromiseRejectedResult;
    assert.ok(reason instanceof BatcherError && reason.code === "TIMEOUT");
    assert.equal(reason.details.predicted, true);
    assert.match(reason.message, /dropped before it ran: its batch would take about 10\.\d* ms.* 18 ms \(timeoutMs\)/);
  }
  assert.equal((third as PromiseRejectedResult).reason.details.predicted, false, "it ran, and was late as foreseen");
  const { items } = batcher.stats();
  assert.deepEqual([items.ok, items.timeout], [21, 3]);
});

test('maxQueueSize "auto" starts at the default and becomes what can be answered in time', async () => {
  const clock = virtualClock();
  const batcher = createBatcher<number, number>(
    async (items) => {
      await clock.sleep(10 + 0.3 * items.length);
      return items;
    },
    { clock, concurrency: 2, timeoutMs: 200, maxQueueSize: "auto", policy: greedy() },
  );
  const refusal = async (): Promise<number> => {
    const calls = Array.from({ length: 12_000 }, (_, i) => batcher(i));
    const full = (await Promise.allSettled(calls)).find(
      (outcome) => outcome.status === "rejected" && outcome.reason.code === "QUEUE_FULL",
    );
    return (full as PromiseRejectedResult).reason.details.maxQueueSize;
  };
  assert.equal(await refusal(), 10_000);
  // 0.9 · 2 slots · 32 / 19.6 ms · (200 − 19.6) ms = 530
  const bound = await refusal();
  assert.ok(bound > 500 && bound < 560, String(bound));
});

test('maxQueueSize "auto" has a bound where runs take no time, and where callers wait forever', () => {
  for (const [runMs, timeoutMs] of [
    [0, 200],
    [1, Infinity],
    [0, Infinity],
  ] as const) {
    for (const maxBatchSize of [1, 32, Infinity]) {
      const learned = new LearnedCost();
      for (let size = 1; size <= 8; size++) {
        learned.observe(Math.min(size, maxBatchSize), runMs);
      }
      // No number at all: the bound that the batcher has stays, 10,000.
      const bound = queueBound(learned, { concurrency: 4, maxBatchSize }, timeoutMs) || 10_000;
      assert.ok(bound >= 1 && bound <= 1_000_000, `${runMs} ms, ${timeoutMs} ms, ${maxBatchSize}: ${bound}`);
    }
  }
});
