import assert from "node:assert/strict";
import { test } from "node:test";
import { type BatcherOptions, type CallOptions, auto, createBatcher, greedy } from "../../dist/index.js";
import { virtualClock } from "../../dist/testing/index.js";
import { seededRandom } from "../../dist/internal/tuning.js";

/** Negative items are live. */
type Options = BatcherOptions<number, number>;

interface Course {
  readonly fixedMs: number;
  readonly perItemMs: number;
  readonly slots: number;
  readonly maxBatchSize: number;
  /** 0: none comes. */
  readonly livePerS: number;
  readonly ms?: number;
  readonly way?: "calls" | "many" | "map" | "lists" | "none";
  readonly options?: Options;
  readonly live?: CallOptions;
}

/** Live calls at random beside a backlog of bulk that never ends: the latencies of the live, the bulk items a second. */
async function play({
  fixedMs,
  perItemMs,
  slots,
  maxBatchSize,
  livePerS,
  ms = 40_000,
  way = "calls",
  options,
  live,
}: Course) {
  const clock = virtualClock();
  const random = seededRandom(752);
  const batcher = createBatcher<number, number>(
    async (items) => {
      const runMs = fixedMs + perItemMs * items.length;
      if (items.some((item) => item < 0)) liveMs += runMs;
      await clock.sleep(runMs);
      for (const item of items) if (item >= 0 && clock.now() <= ms) done++;
      if (clock.now() <= ms && clock.now() > ms / 2) longest = Math.max(longest, items[0]! >= 0 ? items.length : 0);
      return items;
    },
    { concurrency: slots, maxBatchSize, clock, ...options },
  );
  let done = 0;
  let liveMs = 0;
  let longest = 0;
  const latencies: number[] = [];
  const failed: unknown[] = [];
  const stop = new AbortController();
  const bulk = { priority: "bulk", signal: stop.signal } as const;
  const fullPerMs = (slots * maxBatchSize) / (fixedMs + perItemMs * maxBatchSize);
  const items = Array.from({ length: Math.ceil(1.2 * ms * fullPerMs) }, (_, item) => item);
  const ways = {
    none: () => undefined,
    calls: () => items.slice(0, 10_000).forEach((item) => void batcher(item, bulk).catch(() => undefined)),
    many: () => batcher.many(items, bulk),
    map: async () => {
      for await (const _ of batcher.map(items, bulk));
    },
    lists: () =>
      Promise.all(
        Array.from({ length: 8 }, async () => {
          for (;;) await batcher.many(items.slice(0, 100), bulk);
        }),
      ),
  };
  void Promise.resolve(ways[way]()).catch(() => undefined);
  for (let atMs = 1000; livePerS > 0 && atMs < ms; atMs -= (1000 / livePerS) * Math.log(1 - random())) {
    const fromMs = atMs;
    clock.at(fromMs, () => {
      batcher(-1, live).then(
        () => latencies.push(clock.now() - fromMs),
        (error: unknown) => failed.push(error),
      );
    });
  }
  clock.at(ms, () => stop.abort());
  await clock.idle();
  latencies.sort((a, b) => a - b);
  const at = (share: number): number => latencies[Math.floor(share * latencies.length)]!;
  const unused = (ms - liveMs / slots) * fullPerMs;
  return { p50: at(0.5), p99: at(0.99), share: done / unused, bulkPerS: (1000 * done) / ms, failed, longest };
}

const caseOne = { fixedMs: 10, perItemMs: 2, slots: 1, maxBatchSize: 32 };
/** Sizes and slots on which nothing was tuned. */
const services = [
  caseOne,
  { fixedMs: 45, perItemMs: 1.1, slots: 3, maxBatchSize: 48 },
  { fixedMs: 2, perItemMs: 0.9, slots: 2, maxBatchSize: 16 },
];

for (const way of ["calls", "many", "map", "lists"] as const)
  test(`beside an endless backlog of bulk by ${way} a live call waits for one short run, and bulk keeps 0.65 of the rest`, async () => {
    for (const service of services) {
      const { fixedMs, perItemMs, maxBatchSize } = service;
      const perMs = (size: number): number => size / (fixedMs + perItemMs * size);
      let size = 1;
      while (perMs(size) < 0.7 * perMs(maxBatchSize)) size++;
      const alone = await play({ ...service, livePerS: 25, way: "none" });
      const beside = await play({ ...service, livePerS: 25, way, options: { maxQueueSize: 5000 } });
      assert.deepEqual(beside.failed, []);
      const mostMs = 1.5 * alone.p99 + fixedMs + perItemMs * size;
      assert.ok(beside.p99 <= mostMs, `p99 ${beside.p99} ms of at most ${mostMs}, alone ${alone.p99}`);
      if (way !== "calls") assert.ok(beside.share >= 0.65, `bulk got ${beside.share}`);
    }
  });

test("a bulk run without live calls gives 0.97 of the full rate, and is no longer than that takes", async () => {
  const alone = await play({ ...caseOne, livePerS: 0, way: "many" });
  assert.ok(alone.share >= 0.95, `${alone.share}`);
  assert.ok(alone.longest >= 26 && alone.longest <= 28, `${alone.longest} items`);
  // Nothing is gained by runs of several where a run costs nothing but its items.
  const linear = await play({ ...caseOne, fixedMs: 0, livePerS: 0, way: "many" });
  assert.ok(linear.longest <= 2 && linear.share >= 0.95, `${linear.longest} items, ${linear.share}`);
});

test("bulk moves at its floor where live calls alone would fill the machine, with any policy and with groups", async () => {
  for (const options of [
    { policy: auto() },
    { policy: greedy() },
    { groupKey: (item: number) => item < 0 },
    { fairKey: (item: number) => item < 0 },
    { orderKey: (item: number) => (item < 0 ? undefined : item % 100) },
    { weigh: () => 1 },
  ] satisfies Options[]) {
    const { bulkPerS } = await play({ ...caseOne, livePerS: 520, ms: 20_000, way: "many", options });
    // 5 % of 432 a second, and the first second alone.
    const floorPerS = bulkPerS - 432 / 20;
    assert.ok(floorPerS >= 0.025 * 432 && floorPerS <= 0.08 * 432, `${Object.keys(options)}: ${floorPerS} a second`);
  }
});

test("a policy's latency budget and the deadlines of live calls bound the runs of bulk", async () => {
  const live = { timeoutMs: 60 };
  const bound = await play({ ...caseOne, livePerS: 10, way: "many", live });
  // The first live call may meet a longer run: none had come for a minute.
  assert.ok(bound.failed.length <= 1, String(bound.failed[1]));
  const budget = await play({
    ...caseOne,
    livePerS: 10,
    way: "many",
    options: { policy: auto({ latencyBudgetMs: 120 }) },
  });
  assert.ok(budget.p99 <= 135 && budget.share >= 0.9, `p99 ${budget.p99} ms, bulk ${budget.share}`);
});

test("live calls with deadlines are neither refused nor dropped because of a backlog of bulk", async () => {
  for (const options of [{ refuseLate: 1 }, { refuseLate: 0.9, overloadOrder: "arrival" }, {}] satisfies Options[]) {
    const { failed } = await play({ ...caseOne, livePerS: 20, way: "many", live: { timeoutMs: 100 }, options });
    assert.deepEqual(failed, []);
  }
});
