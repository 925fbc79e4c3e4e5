import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher, type BatcherOptions, type RateLimit } from "../../dist/index.js";
import { virtualClock } from "../../dist/testing/index.js";
import {
  assertCode,
  heldBatcher,
  numbers,
  statuses,
  timedBatcher,
  watch,
  watchAll,
  type Watched,
} from "../support/rig.js";
import { inProof } from "../support/seeds.js";

const sizes = (batches: readonly unknown[][]): number[] => batches.map((batch) => batch.length);

/** The most of what `amount` counts that started within any span of `perMs`. */
function maxPerSpan<T extends { readonly startedAtMs: number }>(
  runs: readonly T[],
  perMs: number,
  amount: (run: T) => number,
) {
  return Math.max(
    ...runs.map(({ startedAtMs }) =>
      runs
        .filter((run) => run.startedAtMs >= startedAtMs && run.startedAtMs < startedAtMs + perMs)
        .reduce((sum, run) => sum + amount(run), 0),
    ),
  );
}

test("runs: at most so many runs go per perMs, after a burst of at most the same", async () => {
  const { batcher, clock, runs } = timedBatcher({
    rateLimit: { runs: 2, perMs: 100 },
    maxBatchSize: 1,
    concurrency: 8,
    fixedMs: 1,
  });
  const calls = watchAll(batcher, numbers(20));
  await clock.settle();
  assert.equal(runs.length, 2);
  await clock.advanceAsync(10_000);
  assert.ok(statuses(calls).every((status) => status === "fulfilled"));
  assert.equal(
    maxPerSpan(runs, 100, () => 1),
    2,
  );
  const spanMs = runs.at(-1)!.startedAtMs - runs[0]!.startedAtMs;
  assert.ok(spanMs >= 900 - 1 && spanMs <= 1_000, `20 runs took ${spanMs} ms`);
});

test("items: at most so many items go per perMs", async () => {
  const { batcher, clock, runs } = timedBatcher({
    rateLimit: { items: 10, perMs: 1_000 },
    maxBatchSize: 5,
    concurrency: 8,
  });
  const calls = watchAll(batcher, numbers(40));
  await clock.advanceAsync(60_000);
  assert.ok(statuses(calls).every((status) => status === "fulfilled"));
  const spanMs = runs.at(-1)!.startedAtMs - runs[0]!.startedAtMs;
  const late = runs.reduce((sum, run) => sum + run.items.length, 0) - 10;
  assert.ok(spanMs >= (late / 10) * 1_000 - 1_000, `${spanMs} ms`);
  assert.ok(maxPerSpan(runs, 1_000, ({ items }) => items.length) <= 10);
});

test("weight: at most so much weight goes per perMs", async () => {
  const { batcher, clock, runs } = timedBatcher({
    rateLimit: { weight: 100, perMs: 1_000 },
    weigh: (item) => item,
    concurrency: 8,
  });
  const calls = watchAll(batcher, Array(20).fill(30));
  await clock.advanceAsync(60_000);
  assert.ok(statuses(calls).every((status) => status === "fulfilled"));
  assert.ok(maxPerSpan(runs, 1_000, ({ items }) => items.reduce((a, b) => a + b, 0)) <= 100);
  assert.ok(clock.now() > 0 && runs.at(-1)!.startedAtMs - runs[0]!.startedAtMs >= 4_000);
});

test("items wait and batches fill while the bucket is empty", async () => {
  const { batcher, clock, batches } = timedBatcher({ rateLimit: { runs: 1, perMs: 100 }, concurrency: 4, fixedMs: 1 });
  watchAll(batcher, [0]);
  await clock.settle();
  for (let item = 1; item <= 9; item++) {
    watchAll(batcher, [item]);
    await clock.advanceAsync(10);
  }
  await clock.advanceAsync(10);
  assert.deepEqual(batches(), [[0], numbers(9, 1)]);
});

test("items wait outside the slots: nothing is in flight while the bucket is empty", async () => {
  const { batcher, clock } = timedBatcher({ rateLimit: { runs: 1, perMs: 100 }, maxBatchSize: 1, fixedMs: 5 });
  watchAll(batcher, [1, 2, 3]);
  await clock.advanceAsync(50);
  assert.equal(batcher.stats().inFlight, 0);
  assert.equal(batcher.stats().queued, 2);
});

test("a bucket smaller than a batch caps the batch", async () => {
  const { batcher, clock, batches } = timedBatcher({ rateLimit: { items: 3, perMs: 100 }, maxBatchSize: 32 });
  const calls = watchAll(batcher, numbers(9));
  await clock.advanceAsync(10_000);
  assert.ok(statuses(calls).every((status) => status === "fulfilled"));
  assert.ok(
    sizes(batches()).every((size) => size <= 3),
    String(sizes(batches())),
  );
});

test("the bucket of items does not send crumbs: it lets a capped batch fill", async () => {
  const { batcher, clock, batches } = timedBatcher({
    rateLimit: { items: 10, perMs: 100 },
    maxBatchSize: 10,
    fixedMs: 1,
  });
  watchAll(batcher, numbers(50));
  await clock.advanceAsync(10_000);
  assert.ok(batches().length <= 10, `${batches().length} batches for 50 items: ${String(sizes(batches()))}`);
});

test("an item heavier than the bucket settles somehow and never blocks the others", async () => {
  const { batcher, clock } = timedBatcher({ rateLimit: { weight: 10, perMs: 100 }, weigh: (item) => item });
  const calls = watchAll(batcher, [1, 50, 2]);
  await clock.advanceAsync(100_000);
  assert.deepEqual([calls[0]!.status, calls[2]!.status], ["fulfilled", "fulfilled"]);
  assert.notEqual(calls[1]!.status, "pending");
});

test("a waiting item's timeout and abort work while the bucket is empty", async () => {
  const { batcher, clock, batches } = timedBatcher({ rateLimit: { runs: 1, perMs: 1_000 }, maxBatchSize: 1 });
  const controller = new AbortController();
  watchAll(batcher, [1]);
  await clock.settle();
  const timed = watch(batcher(2, { timeoutMs: 50 }));
  const aborted = watch(batcher(3, { signal: controller.signal }));
  await clock.advanceAsync(50);
  assertCode(timed, "TIMEOUT");
  controller.abort();
  await clock.settle();
  assert.equal(aborted.status, "rejected");
  await clock.advanceAsync(10_000);
  assert.deepEqual(batches(), [[1]]);
});

test("an error with retryAfterMs pauses dispatch that long, without a bucket too", async () => {
  for (const options of [{}, { rateLimit: { runs: 100, perMs: 1_000 } }]) {
    const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 1, concurrency: 2, ...options });
    const first = watch(batcher(1));
    await clock.settle();
    const busy = Object.assign(new Error("429 slow down"), { status: 429, retryAfterMs: 500 });
    await runs[0]!.fail(busy);
    assert.equal(first.reason, busy);
    const pausedAtMs = clock.now();
    const why = 'a run failed with retryAfterMs: "429 slow down"';
    assert.deepEqual(batcher.stats().pause, { leftMs: 500, why });
    watchAll(batcher, [2]);
    await clock.advanceAsync(499);
    assert.equal(runs.length, 1);
    await clock.advanceAsync(1);
    assert.equal(runs[1]!.startedAtMs, pausedAtMs + 500);
    assert.equal(batcher.stats().pause, null);
  }
});

test("a pause holds immediate items, flushes and drains back as well", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 1 });
  watchAll(batcher, [1]);
  await clock.settle();
  await runs[0]!.fail(Object.assign(new Error("slow down"), { retryAfterMs: 200 }));
  watchAll(batcher, [2], { priority: "immediate" });
  void batcher.flush();
  void batcher.drain();
  await clock.advanceAsync(199);
  assert.equal(runs.length, 1);
  await clock.advanceAsync(1);
  assert.equal(runs.length, 2);
});

test("the later of two pauses counts", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 1, concurrency: 2 });
  watchAll(batcher, [1, 2]);
  await clock.settle();
  await runs[0]!.fail(Object.assign(new Error("slow down"), { retryAfterMs: 500 }));
  await clock.advanceAsync(10);
  await runs[1]!.fail(Object.assign(new Error("slow down"), { retryAfterMs: 20 }));
  const startAtMs = clock.now();
  watchAll(batcher, [3]);
  await clock.advanceAsync(10_000);
  assert.equal(runs[2]!.startedAtMs, startAtMs + 490);
});

test("a retryAfterMs that is not a span of time is ignored", async () => {
  for (const retryAfterMs of [Number.NaN, -5, "500", Infinity, null]) {
    const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 1 });
    watchAll(batcher, [1]);
    await clock.settle();
    await runs[0]!.fail(Object.assign(new Error("odd"), { retryAfterMs }));
    watchAll(batcher, [2]);
    await clock.advanceAsync(10);
    assert.equal(runs.length, 2, String(retryAfterMs));
  }
});

test("no pause is longer than maxPauseMs: an epoch taken for a span stops nothing for good", async () => {
  for (const [options, longestMs] of [
    [{}, 300_000],
    [{ maxPauseMs: 5000 }, 5000],
  ] as const)
    for (const retryAfterMs of [1e9, 1_764_292_800_000, 1e300])
      for (const ask of ["error", "pause"]) {
        const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 1, ...options });
        watchAll(batcher, [1]);
        await clock.settle();
        const busy = Object.assign(new Error("429"), { retryAfterMs });
        if (ask === "pause") runs[0]!.context.pause!(retryAfterMs);
        await (ask === "error" ? runs[0]!.fail(busy) : runs[0]!.finish());
        const pausedAtMs = clock.now();
        watchAll(batcher, [2]);
        await clock.advanceAsync(longestMs);
        assert.equal(runs[1]?.startedAtMs, pausedAtMs + longestMs, `${ask} ${retryAfterMs}`);
      }
});

test("the retryAfterMs of a run that was given up pauses dispatch too", async () => {
  const { batcher, clock, runs } = heldBatcher({ maxBatchSize: 1, concurrency: 2, runTimeoutMs: 10 });
  watchAll(batcher, [1]);
  await clock.advanceAsync(20);
  await runs[0]!.fail(Object.assign(new Error("slow down"), { retryAfterMs: 100 }));
  watchAll(batcher, [2]);
  await clock.advanceAsync(99);
  assert.equal(runs.length, 1);
  await clock.advanceAsync(1);
  assert.equal(runs.length, 2);
});

test("context.pause holds dispatch as retryAfterMs does, while the run that asked goes on; nonsense is ignored", async () => {
  const { batcher, clock, runs } = heldBatcher({ concurrency: 4, maxBatchSize: 1 });
  watch(batcher(0));
  await clock.settle();
  for (const odd of [Number.NaN, -5, Infinity]) runs[0]!.context.pause!(odd);
  runs[0]!.context.pause!(300);
  const [late] = watchAll(batcher, [1]);
  await clock.advanceAsync(299);
  assert.equal(runs.length, 1);
  await clock.advanceAsync(1);
  assert.equal(runs.length, 2);
  await runs[0]!.finish();
  await runs[1]!.finish();
  assert.equal(late!.status, "fulfilled");
});

/** Callers who never stop, at random moments and of random weights; what went, and when. */
async function crowd(rateLimit: RateLimit[], calls: number, options: BatcherOptions<number, number> = {}) {
  const clock = virtualClock();
  const sent: { readonly startedAtMs: number; readonly runs: 1; readonly items: number; readonly weight: number }[] =
    [];
  const batcher = createBatcher(
    async (items: number[]) => {
      sent.push({ startedAtMs: clock.now(), runs: 1, items: items.length, weight: items.reduce((a, b) => a + b, 0) });
      await clock.sleep(random() * 30);
      return items;
    },
    {
      clock,
      weigh: (weight) => weight,
      maxBatchSize: 40,
      concurrency: 16,
      maxQueueSize: Infinity,
      rateLimit,
      ...options,
    },
  );
  let seed = 1;
  const random = (): number => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
  const results: Promise<number>[] = [];
  while (results.length < calls) {
    for (let burst = 1 + Math.floor(random() * 60); burst > 0 && results.length < calls; burst--)
      results.push(batcher(1 + Math.floor(random() * 20)));
    await clock.sleep(random() * 80);
  }
  await Promise.all(results);
  return { sent, stats: batcher.stats().rateLimit! };
}

const atRandom = inProof(100_000, 4000);
for (const [name, limits] of Object.entries<RateLimit[]>({
  runs: [{ runs: 5, perMs: 1000 }],
  items: [{ items: 100, perMs: 1000 }],
  weight: [{ weight: 1000, perMs: 1000 }],
  "a second and a longer time": [
    { items: 200, perMs: 1000 },
    { items: 1000, runs: 60, perMs: 10_000 },
  ],
}))
  test(`${name}: any period holds at most the limit, and the limit is used: ${atRandom} calls at random moments`, async () => {
    const { sent } = await crowd(limits, atRandom);
    for (const { perMs, ...most } of limits)
      for (const [kind, limit] of Object.entries(most) as ["runs" | "items" | "weight", number][]) {
        let sum = 0;
        let first = 0;
        for (const run of sent) {
          sum += run[kind];
          while (sent[first]!.startedAtMs + perMs <= run.startedAtMs) sum -= sent[first++]![kind];
          assert.ok(sum <= limit + 1e-6, `${sum} ${kind} within ${perMs} ms that end at ${run.startedAtMs}`);
        }
      }
    // The first of them that is used up.
    const used = limits.flatMap(({ perMs, ...most }) =>
      Object.entries(most).map(([kind, limit]) => {
        const [from, until] = [perMs, sent.at(-1)!.startedAtMs];
        const later = sent.filter(({ startedAtMs }) => startedAtMs >= from && startedAtMs < until);
        return later.reduce((all, run) => all + run[kind as "runs"], 0) / (((until - from) / perMs) * limit!);
      }),
    );
    assert.ok(Math.max(...used) >= 0.97, `used ${used.join(", ")}`);
  });

test("a batch is cut to what is left of a limit: none of it stays unused", async () => {
  const { batcher, clock, batches } = timedBatcher({
    rateLimit: { items: 100, perMs: 1000 },
    maxBatchSize: 40,
    concurrency: 8,
  });
  watchAll(batcher, numbers(300));
  await clock.advanceAsync(999);
  assert.deepEqual(sizes(batches()), [40, 40, 20]);
});

test("a period gets longer where the service asks for a pause all the same, and 20 periods take it back", async () => {
  const { batcher, clock, runs } = timedBatcher({ rateLimit: { runs: 1, perMs: 1000 }, fixedMs: 1, maxBatchSize: 1 });
  const gapMs = async (): Promise<number> => {
    watchAll(batcher, [0, 0]);
    await clock.advanceAsync(5000);
    return runs.at(-1)!.startedAtMs - runs.at(-2)!.startedAtMs;
  };
  assert.equal(await gapMs(), 1000);
  runs.at(-1)!.context.pause(1);
  const longerMs = await gapMs();
  assert.ok(longerMs > 1010 && longerMs <= 1020, `${longerMs}`);
  await clock.advanceAsync(20_000);
  assert.equal(await gapMs(), 1000);
});

test("of several limits of one kind the stats show the tightest", async () => {
  const limits = [{ items: 100, perMs: 1000 }, { items: 1000, perMs: 60_000 }]; // prettier-ignore
  const { stats } = await crowd(limits, 50);
  assert.deepEqual([stats.items.perMinute, stats.items.holds, stats.items.used], [1000, 100, 50]);
  assert.equal(stats.weight.perMinute, null);
});

test("items that come while the policy decides do not go past the limit", async () => {
  for (const kind of ["items", "weight"] as const) {
    const late: Watched<number>[] = [];
    const { batcher, clock, runs } = timedBatcher({
      rateLimit: { [kind]: 4, perMs: 1_000 },
      ...(kind === "weight" ? { weigh: (item: number) => item } : {}),
      policy: {
        name: "calls",
        decide: ({ waiting }) => {
          if (waiting === 3 && late.length === 0) late.push(watch(batcher(1, { priority: "immediate" })));
          return "wait";
        },
      },
      maxWaitMs: 0,
    });
    const calls = watchAll(batcher, [1]);
    await clock.settle();
    calls.push(...watchAll(batcher, [1, 1, 1]));
    await clock.advanceAsync(10_000);
    assert.deepEqual(statuses([...calls, ...late]), Array(5).fill("fulfilled"), kind);
    assert.ok(maxPerSpan(runs, 1_000, ({ items }) => items.length) <= 4, kind);
  }
});

for (const [kind, limit] of [
  ["runs", { runs: 120, perMs: 2000 }],
  ["items", { items: 720, perMs: 2000 }],
  ["weight", { weight: 720, perMs: 2000 }],
] as const)
  test(`a limit of ${kind} that is short is spread over its period: no bunch comes back after a pause`, async () => {
    const clock = virtualClock();
    const run = async (items: number[]): Promise<number[]> => {
      await clock.sleep(kind === "runs" ? 0 : 10);
      return items;
    };
    const options = { maxBatchSize: 100, weigh: () => 1, maxQueueSize: Infinity };
    const batcher = createBatcher(run, { clock, rateLimit: limit, ...options });
    const latencies: { atMs: number; ms: number }[] = [];
    const callsEach = 3.5; // in 10 ms: just below the limits of items and weight
    let calls = 0;
    for (let atMs = 0; atMs < 12_000; atMs += 10) {
      const isPaused = atMs >= 6000 && atMs < 6400;
      for (; !isPaused && calls < (atMs / 10) * callsEach; calls++)
        void batcher(calls).then(() => latencies.push({ atMs, ms: clock.now() - atMs }));
      if (isPaused) calls = (atMs / 10) * callsEach;
      await clock.sleep(10);
    }
    await clock.idle();
    const longestMs = Math.max(...latencies.filter(({ atMs }) => atMs >= 4000).map(({ ms }) => ms));
    assert.ok(longestMs <= 150, `${longestMs} ms`);
  });

test("what a limit allows goes at once, however often, while nothing had to wait for it", async () => {
  const { batcher, clock, runs } = timedBatcher({
    rateLimit: { runs: 5, perMs: 1000 },
    maxBatchSize: 1,
    concurrency: 5,
    fixedMs: 1,
  });
  for (let burst = 0; burst < 4; burst++) {
    watchAll(batcher, numbers(5));
    await clock.settle();
    assert.equal(runs.length, 5 * (burst + 1));
    await clock.advanceAsync(1500);
  }
});
