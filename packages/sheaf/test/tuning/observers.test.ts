import assert from "node:assert/strict";
import { test } from "node:test";
import { simulate, type SimulationOptions } from "../../dist/tuning/index.js";
import type { SimulatedCall, SimulatedRun } from "../../dist/internal/tuning.js";

const gpu = { cost: { fixedMs: 10, perItemMs: 0.3 }, concurrency: 1 } as const;

test("onRun sees every run with its items, onCall every call with its end, and neither changes the result", async () => {
  const options: SimulationOptions = {
    ...gpu,
    arrivals: { pattern: "surge", ratePerS: 900, factor: 4, atMs: 500, forMs: 500 },
    retries: { patienceMs: 40, attempts: 3 },
    items: 3000,
    warmUp: 0,
  };
  const plain = await simulate(options);
  const calls: SimulatedCall[] = [];
  const runs: SimulatedRun[] = [];
  const seen = await simulate({ ...options, onCall: (call) => calls.push(call), onRun: (run) => runs.push(run) });
  assert.deepEqual(seen, plain);
  assert.equal(runs.length, plain.runs);
  assert.deepEqual(new Map([...countBy(runs.map(({ items }) => items.length))].sort(([a], [b]) => a - b)), plain.batchSizes); // prettier-ignore
  for (const { items, runMs } of runs) assert.ok(Math.abs(runMs - 10 - 0.3 * items.length) < 1e-9);
  const answered = calls.filter(({ end }) => end === "ok");
  assert.equal(answered.length, plain.items.ok);
  const latencies = answered.map(({ atMs, endedAtMs }) => endedAtMs - atMs).sort((a, b) => a - b);
  assert.equal(latencies.at(-1), plain.latencyMs.max);
  assert.equal(latencies[Math.floor(latencies.length / 2)], plain.latencyMs.p50);
  assert.ok(plain.goodput!.attemptsPerOperation > 1);
  assert.equal(calls.length, Math.round(plain.goodput!.attemptsPerOperation * 3000), "each attempt is a call");
  assert.ok(calls.some(({ end }) => end === "gaveUp"));
});

test("an error that onCall or onRun throws ends the simulation", async () => {
  for (const name of ["onCall", "onRun"] as const) {
    const broken = (): never => {
      throw new Error(`from ${name}`);
    };
    await assert.rejects(
      simulate({ ...gpu, arrivals: { pattern: "poisson", ratePerS: 100 }, items: 50, [name]: broken }),
      {
        message: `from ${name}`,
      },
    );
  }
});

function countBy(values: readonly number[]): Map<number, number> {
  const counts = new Map<number, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}
