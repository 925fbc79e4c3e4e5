import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createBatcher,
  createRateLimit,
  type Batcher,
  type BatcherOptions,
  type SharedRateLimit,
} from "../../dist/index.js";
import { virtualClock, type VirtualClock } from "../../dist/testing/index.js";

const runMs = (items: number): number => 10 + 0.5 * items;

interface Service {
  readonly clock: VirtualClock;
  /** Items of each lane that have run. */
  readonly done: { live: number; bulk: number };
  readonly batcher: Batcher<number, number>;
}

/** Live items are negative. */
function service(options: BatcherOptions<number, number>, clock = virtualClock()): Service {
  const done = { live: 0, bulk: 0 };
  const batcher = createBatcher(
    async (items: number[]) => {
      await clock.sleep(runMs(items.length));
      for (const item of items) done[item < 0 ? "live" : "bulk"]++;
      return items;
    },
    { maxBatchSize: 4, concurrency: 2, maxQueueSize: 10_000, clock, ...options },
  );
  return { clock, done, batcher };
}

const backlog = ({ batcher }: Service, signal: AbortSignal, calls = 4000): void => {
  for (let item = 1; item <= calls; item++) batcher(item, { priority: "bulk", signal }).catch(() => {});
};

/** `burst` live calls each `everyMs`. @returns their latencies */
function live({ batcher, clock }: Service, everyMs: number, endMs: number, burst = 1): number[] {
  const latencies: number[] = [];
  for (let atMs = 500; atMs < endMs; atMs += everyMs) {
    for (let i = 0; i < burst; i++)
      clock.at(atMs, () => {
        const fromMs = clock.now();
        void batcher(-1).then(() => latencies.push(clock.now() - fromMs));
      });
  }
  return latencies;
}

const p99 = (latencies: readonly number[]): number =>
  latencies.toSorted((a, b) => a - b)[Math.floor(0.99 * latencies.length)]!;

const endMs = 60_000;
const limit = { items: 200, perMs: 10_000 };
const limits: [string, (clock: VirtualClock) => BatcherOptions<number, number>["rateLimit"]][] = [
  ["of items", () => limit],
  ["of runs", () => ({ runs: 60, perMs: 10_000 })],
  ["two at once", () => [limit, { items: 20_000, perMs: 3_600_000 }]],
  ["shared", (clock) => createRateLimit({ limits: limit, clock })],
];

for (const [name, rateLimit] of limits)
  for (const [everyMs, burst] of [
    [2000, 1],
    [500, 1],
    [10_000, 10],
  ] as const)
    test(`a limit ${name}: ${burst} live each ${everyMs} ms wait no longer beside an endless bulk backlog than for a run of it`, async () => {
      const alone = service({ rateLimit: rateLimit(virtualClock()) });
      const aloneMs = live(alone, everyMs, endMs, burst);
      await alone.clock.idle();
      const clock = virtualClock();
      const beside = service({ rateLimit: rateLimit(clock) }, clock);
      const stop = new AbortController();
      backlog(beside, stop.signal);
      const latencies = live(beside, everyMs, endMs, burst);
      clock.at(endMs, () => stop.abort());
      await clock.idle();
      assert.equal(latencies.length, aloneMs.length, "every live call is answered");
      const most = 1.5 * p99(aloneMs) + runMs(4);
      assert.ok(p99(latencies) <= most, `${p99(latencies)} ms, alone ${p99(aloneMs)}`);
    });

test("bulk gets nine tenths of what live calls leave of a limit", async () => {
  const beside = service({ rateLimit: limit });
  const stop = new AbortController();
  backlog(beside, stop.signal);
  live(beside, 500, endMs);
  beside.clock.at(endMs, () => stop.abort());
  await beside.clock.idle();
  const left = (limit.items * endMs) / limit.perMs - beside.done.live;
  assert.ok(beside.done.bulk >= 0.9 * left, `${beside.done.bulk} of ${left}`);
});

test("bulk moves on where live calls alone would spend the whole limit, also those of another batcher, and gets its twentieth", async () => {
  for (const shared of [false, true]) {
    const clock = virtualClock();
    const rateLimit: SharedRateLimit | typeof limit = shared ? createRateLimit({ limits: limit, clock }) : limit;
    const own = service({ rateLimit }, clock);
    const other = shared ? service({ rateLimit }, clock) : own;
    const stop = new AbortController();
    backlog(other, stop.signal);
    let bulk = 0;
    live(own, 40, endMs);
    clock.at(endMs, () => {
      bulk = other.done.bulk;
      stop.abort();
    });
    await clock.idle();
    const all = (limit.items * endMs) / limit.perMs;
    assert.ok(bulk >= 0.04 * all && bulk <= 0.1 * all, `${shared ? "shared" : "own"}: ${bulk} of ${all}`);
  }
});

test("another batcher's bulk at a shared limit delays no live call by more than a run", async () => {
  const clock = virtualClock();
  const rateLimit = createRateLimit({ limits: limit, clock });
  const users = service({ rateLimit }, clock);
  const nightly = service({ rateLimit }, clock);
  const stop = new AbortController();
  backlog(nightly, stop.signal);
  const latencies = live(users, 500, endMs);
  clock.at(endMs, () => stop.abort());
  await clock.idle();
  assert.ok(p99(latencies) <= 1.5 * runMs(1) + runMs(4), `${p99(latencies)} ms`);
  assert.ok(
    nightly.done.bulk >= 0.8 * ((limit.items * endMs) / limit.perMs - users.done.live),
    String(nightly.done.bulk),
  );
});

test("a pause that the service asks for holds both lanes", async () => {
  const clock = virtualClock();
  const startedAtMs: number[] = [];
  const batcher = createBatcher(
    async (items: number[]) => {
      startedAtMs.push(clock.now());
      if (startedAtMs.length === 1) throw Object.assign(new Error("slow down"), { retryAfterMs: 5000 });
      return items;
    },
    { rateLimit: limit, clock, maxBatchSize: 1 },
  );
  batcher(1, { priority: "bulk" }).catch(() => {});
  clock.at(100, () => void batcher(-1));
  clock.at(100, () => void batcher(2, { priority: "bulk" }));
  await clock.idle();
  assert.deepEqual(startedAtMs.slice(0, 2), [0, 5000]);
  assert.equal(startedAtMs.length, 3);
});

test("bulk alone spends the limit, but for a fortieth", async () => {
  const alone = service({ rateLimit: limit });
  const stop = new AbortController();
  backlog(alone, stop.signal);
  alone.clock.at(endMs, () => stop.abort());
  await alone.clock.idle();
  assert.ok(alone.done.bulk >= (0.93 * limit.items * endMs) / limit.perMs, String(alone.done.bulk));
});

test("bulk that the limit has held for long, and that stands behind live calls of its order key, stops nobody", async () => {
  const clock = virtualClock();
  const ran: number[] = [];
  const batcher = createBatcher(
    (items: number[]) => {
      ran.push(...items);
      return items;
    },
    { clock, concurrency: 1, maxBatchSize: 1, orderKey: () => "key", rateLimit: { runs: 1, perMs: 5 } },
  );
  for (let item = 0; item < 30; item++) void batcher(item);
  void batcher(30, { priority: "bulk" });
  await clock.idle();
  assert.deepEqual(
    ran,
    Array.from({ length: 31 }, (_, item) => item),
  );
});

test("live calls that stand behind bulk of another group hold no bulk back", async () => {
  const clock = virtualClock();
  const ran: string[] = [];
  const batcher = createBatcher(
    (items: { group: number; key: string }[]) => {
      ran.push(...items.map(({ group, key }) => `${key}${group}`));
      return items;
    },
    {
      clock,
      concurrency: 1,
      groupKey: ({ group }) => group,
      orderKey: ({ key }) => key,
      rateLimit: { items: 3, perMs: 6 },
    },
  );
  for (let item = 0; item < 9; item++) void batcher({ group: item % 2, key: `${item}` });
  void batcher({ group: 0, key: "a" }, { priority: "bulk" });
  void batcher({ group: 1, key: "b" }, { priority: "bulk" });
  void batcher({ group: 1, key: "a" });
  void batcher({ group: 0, key: "b" });
  await clock.idle();
  assert.deepEqual(ran.slice(9).sort(), ["a0", "a1", "b0", "b1"]);
  assert.ok(ran.indexOf("a0") < ran.indexOf("a1") && ran.indexOf("b1") < ran.indexOf("b0"), ran.join());
});
