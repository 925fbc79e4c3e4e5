import assert from "node:assert/strict";
import { test } from "node:test";
import { simulate, type SimulationOptions } from "../../dist/tuning/index.js";
import { simulateScaled, type Scaling } from "../../dist/internal/tuning.js";

/** A batch of n items takes 200 + 40 n ms; answers are due after 2 s. */
const model = {
  cost: { fixedMs: 200, perItemMs: 40 },
  timeoutMs: 2000,
  maxQueueSize: Infinity,
  maxBatchSize: 32,
} as const;

/** Five minutes of 10 a second, with 60 a second from the second minute on for a minute and a half. */
const step: SimulationOptions["arrivals"] = {
  pattern: "surge",
  ratePerS: 10,
  factor: 6,
  atMs: 60_000,
  forMs: 90_000,
};

async function scaled(scaling: Scaling) {
  const options = { ...model, arrivals: step, items: 10 * (60 + 6 * 90 + 150), warmUp: 0 };
  const { result, workers } = await simulateScaled(options, scaling);
  return { ...result, workers };
}

test("each way to scale adds workers for the surge and removes them after it", async () => {
  for (const by of ["slots-needed", "queue", "cpu"] as const) {
    const { workers, items } = await scaled({ by, startUpMs: 10_000, everyMs: 5000, downAfterMs: 30_000 });
    const { changes, workerSeconds } = workers;
    const most = Math.max(...changes.map(([, count]) => count));
    const last = changes.at(-1)![1];
    assert.ok(most >= 3, `${by}: ${JSON.stringify(changes)}`);
    assert.ok(last < most, `${by}: ${JSON.stringify(changes)}`);
    assert.ok(changes.every(([atMs], i) => i === 0 || atMs > changes[i - 1]![0]));
    assert.ok(workerSeconds > 300 && workerSeconds < most * 320, `${by}: ${workerSeconds}`);
    assert.ok(items.ok > 0.7 * (items.ok + items.timeout), `${by}: ${JSON.stringify(items)}`);
  }
});

test("workers that start sooner answer more calls in time", async () => {
  const soon = await scaled({ by: "slots-needed", startUpMs: 1000, everyMs: 5000 });
  const late = await scaled({ by: "slots-needed", startUpMs: 90_000, everyMs: 5000 });
  assert.ok(soon.items.ok > late.items.ok + 500, `${soon.items.ok} and ${late.items.ok}`);
});

test("runs take no more than all slots' time, and workers stay within their bounds", async () => {
  const { result, workers } = await simulateScaled(
    { ...model, arrivals: { pattern: "poisson", ratePerS: 100 }, items: 10_000 },
    { by: "queue", target: 1, minWorkers: 2, maxWorkers: 5, startUpMs: 1000, everyMs: 1000 },
  );
  const { utilisation } = result;
  const counts = workers.changes.map(([, count]) => count);
  assert.equal(Math.min(...counts), 2);
  assert.equal(Math.max(...counts), 5);
  assert.ok(utilisation > 0.5 && utilisation <= 1, `${utilisation}`);
});

test("a schedule is kept to, without a start-up", async () => {
  const { workers } = await scaled({ by: "schedule", everyMs: 10_000, schedule: (atMs) => (atMs < 100_000 ? 2 : 4.2) });
  assert.deepEqual(workers.changes, [
    [0, 2],
    [100_000, 5],
  ]);
});

test("what makes no sense is refused, with the value", async () => {
  const refused = (scaling: unknown, message: RegExp, more: object = {}): Promise<void> =>
    assert.rejects(simulateScaled({ ...model, arrivals: step, ...more }, scaling as Scaling), message);
  await refused({ by: "luck" }, /scaling\.by must be .*got "luck"/);
  await refused({ by: "cpu", target: 0 }, /scaling\.target must be a number > 0, got 0/);
  await refused({ by: "schedule" }, /scaling\.schedule must be a function/);
  await refused({ by: "cpu", minWorkers: 5, maxWorkers: 4 }, /maxWorkers must be at least minWorkers \(5\), got 4/);
  await refused({ by: "cpu", worker: 5 }, /unknown option scaling\.worker/);
  await refused({ by: "cpu" }, /scaling and concurrency cannot be combined/, { concurrency: 2 });
  await assert.rejects(simulate({ ...model, arrivals: step, scaling: { by: "cpu" } } as never), /scaling/);
});
