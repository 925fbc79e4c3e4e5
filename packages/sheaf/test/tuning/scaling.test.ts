import assert from "node:assert/strict";
import { test } from "node:test";
import { simulate, type SimulationOptions, type SimulationResult } from "../../dist/tuning/index.js";
import type { Scaling } from "../../dist/internal/tuning.js";

/** A batch of n items takes 200 + 40 n ms; answers are due after 2 s. */
const model = {
  cost: { fixedMs: 200, perItemMs: 40 },
  timeoutMs: 2000,
  maxQueueSize: Infinity,
  maxBatchSize: 32,
} as const;

/** Ten minutes of 10 a second, with 60 a second from the third to the sixth minute. */
const step: SimulationOptions["arrivals"] = {
  pattern: "surge",
  ratePerS: 10,
  factor: 6,
  atMs: 120_000,
  forMs: 180_000,
};

const scaled = (scaling: Scaling): Promise<SimulationResult> =>
  simulate({ ...model, arrivals: step, items: 10 * (120 + 6 * 180 + 300), warmUp: 0, scaling });

test("each way to scale adds workers for the surge and removes them after it", async () => {
  for (const by of ["slots-needed", "queue", "cpu"] as const) {
    const { workers, items } = await scaled({ by, startUpMs: 10_000, everyMs: 5000, downAfterMs: 60_000 });
    const { changes, workerSeconds } = workers!;
    const most = Math.max(...changes.map(([, count]) => count));
    const last = changes.at(-1)![1];
    assert.ok(most >= 3, `${by}: ${JSON.stringify(changes)}`);
    assert.ok(last < most, `${by}: ${JSON.stringify(changes)}`);
    assert.ok(changes.every(([atMs], i) => i === 0 || atMs > changes[i - 1]![0]));
    assert.ok(workerSeconds > 600 && workerSeconds < most * 620, `${by}: ${workerSeconds}`);
    assert.ok(items.ok > 0.7 * (items.ok + items.timeout), `${by}: ${JSON.stringify(items)}`);
  }
});

test("workers that start sooner answer more calls in time", async () => {
  const soon = await scaled({ by: "slots-needed", startUpMs: 1000, everyMs: 5000 });
  const late = await scaled({ by: "slots-needed", startUpMs: 90_000, everyMs: 5000 });
  assert.ok(soon.items.ok > late.items.ok + 1000, `${soon.items.ok} and ${late.items.ok}`);
});

test("runs take no more than all slots' time, and workers stay within their bounds", async () => {
  const { workers, utilisation } = await simulate({
    ...model,
    arrivals: { pattern: "poisson", ratePerS: 100 },
    items: 10_000,
    scaling: { by: "queue", target: 1, minWorkers: 2, maxWorkers: 5, startUpMs: 1000, everyMs: 1000 },
  });
  const counts = workers!.changes.map(([, count]) => count);
  assert.equal(Math.min(...counts), 2);
  assert.equal(Math.max(...counts), 5);
  assert.ok(utilisation > 0.5 && utilisation <= 1, `${utilisation}`);
});

test("a schedule is kept to, without a start-up", async () => {
  const { workers } = await scaled({ by: "schedule", everyMs: 10_000, schedule: (atMs) => (atMs < 100_000 ? 2 : 4.2) });
  assert.deepEqual(workers!.changes, [
    [0, 2],
    [100_000, 5],
  ]);
});

test("a day has its rate, its hours and its bursts, and ends", async () => {
  const atMs: number[] = [];
  const arrivals = {
    pattern: "day",
    ratePerS: 20,
    lengthMs: 1_000_000,
    swing: 0.5,
    bursts: { count: 0, factor: 1, riseMs: 0, forMs: 0 },
  } as const;
  const { items, durationMs } = await simulate({
    cost: (_size, nowMs) => {
      atMs.push(nowMs);
      return 1;
    },
    arrivals,
    maxBatchSize: 1,
    concurrency: 100,
  });
  assert.ok(Math.abs(items.ok / 20_000 - 1) < 0.03, `${items.ok} calls`);
  assert.ok(durationMs > 990_000 && durationMs <= 1_000_001);
  const noon = atMs.filter((ms) => ms > 400_000 && ms < 600_000).length / 200;
  const night = atMs.filter((ms) => ms < 100_000 || ms > 900_000).length / 200;
  assert.ok(noon > 27 && night < 13, `${noon} and ${night} a second`);
  const withBursts = { ...arrivals, bursts: { count: 10, factor: 3, riseMs: 5000, forMs: 20_000 } };
  const more = await simulate({ cost: () => 1, arrivals: withBursts, maxBatchSize: 1, concurrency: 100 });
  assert.ok(more.items.ok > 1.15 * items.ok && more.items.ok < 1.6 * items.ok, `${more.items.ok} calls`);
});

test("what makes no sense is refused, with the value", async () => {
  const refused = (scaling: unknown, message: RegExp, more: object = {}): Promise<void> =>
    assert.rejects(simulate({ ...model, arrivals: step, ...more, scaling: scaling as Scaling }), message);
  await refused({ by: "luck" }, /scaling\.by must be .*got "luck"/);
  await refused({ by: "cpu", target: 0 }, /scaling\.target must be a number > 0, got 0/);
  await refused({ by: "schedule" }, /scaling\.schedule must be a function/);
  await refused({ by: "cpu", minWorkers: 5, maxWorkers: 4 }, /maxWorkers must be at least minWorkers \(5\), got 4/);
  await refused({ by: "cpu", worker: 5 }, /unknown option scaling\.worker/);
  await refused({ by: "cpu" }, /scaling excludes concurrency/, { concurrency: 2 });
  const day = (more: object): Promise<unknown> =>
    simulate({ ...model, arrivals: { pattern: "day", ratePerS: 1, ...more } });
  await assert.rejects(day({ ratePerS: 0 }), /ratePerS of arrivals must be a number > 0, got 0/);
  await assert.rejects(day({ swing: 2 }), /swing of arrivals must be a share/);
  await assert.rejects(day({ bursts: 3 }), /bursts of arrivals must be an object, got 3/);
});
