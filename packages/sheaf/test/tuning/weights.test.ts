import assert from "node:assert/strict";
import { test } from "node:test";
import { simulate, type SimulationOptions } from "../../dist/tuning/index.js";

const texts: SimulationOptions = {
  arrivals: { pattern: "poisson", ratePerS: 150 },
  cost: { fixedMs: 10, perItemMs: 0, perWeightMs: 0.02 },
  weights: { pattern: "lognormal", median: 40, p99: 2000, max: 8192 },
  concurrency: 1,
  items: 4000,
};

test("lengths are as they are asked for, and the same seed draws the same", async () => {
  const seen: number[] = [];
  const weighed = (weights: SimulationOptions["weights"], seed: number) =>
    simulate({
      ...texts,
      weights,
      seed,
      maxBatchSize: 1,
      concurrency: 1e6,
      cost: (_, __, { sum }) => (seen.push(sum), 1),
    });
  await weighed(texts.weights, 3);
  const sorted = seen.splice(0).sort((a, b) => a - b);
  assert.ok(
    Math.abs(sorted[2000]! - 40) < 4 && Math.abs(sorted[3960]! - 2000) < 500,
    `${sorted[2000]}, ${sorted[3960]}`,
  );
  assert.ok(sorted.at(-1)! <= 8192);
  await weighed(texts.weights, 3);
  assert.deepEqual(
    seen.splice(0).sort((a, b) => a - b),
    sorted,
  );
  await weighed({ pattern: "trace", weights: [3, 1, 2] }, 3);
  assert.deepEqual(seen.slice(0, 5), [3, 1, 2, 3, 1]);
});

test("with weights known, short items wait far less, and the batcher has learned the cost", async () => {
  const byWeight = await simulate(texts);
  const bySize = await simulate({ ...texts, weigh: () => 1 });
  const [known, unknown] = [byWeight, bySize].map(({ latencyMsByWeight }) => latencyMsByWeight!.lighter.p99);
  assert.ok(known! < 0.7 * unknown!, `${known} ms with weights, ${unknown} ms without`);
});

test("padded items go with others of like length: the queue stays short where sizes alone let it grow", async () => {
  const cost = { fixedMs: 10, perItemMs: 0, perWeightMs: 0.02, batchWeight: "padded" as const };
  const padded = { ...texts, arrivals: { pattern: "poisson" as const, ratePerS: 70 }, cost };
  const byWeight = await simulate(padded);
  const bySize = await simulate({ ...padded, weigh: () => 1 });
  assert.ok(byWeight.latencyMs.p99 < 0.5 * bySize.latencyMs.p99, `${byWeight.latencyMs.p99}, ${bySize.latencyMs.p99}`);
});

test("weights that make no sense are refused with what they were", async () => {
  for (const [weights, message] of [
    [{ pattern: "lognormal", median: 0, p99: 5 }, /median of weights must be a number > 0, got 0/],
    [{ pattern: "lognormal", median: 9, p99: 5 }, /p99 of weights must be >= median \(9\), got 5/],
    [{ pattern: "trace", weights: [] }, /at least one weight/],
    [{ pattern: "trace", weights: [1, -1] }, /weights\[1\] of a trace/],
    [{ pattern: "even" }, /pattern of weights must be/],
    [7, /weights must be \{ pattern, … \}, got 7/],
  ] as const)
    await assert.rejects(simulate({ ...texts, weights: weights as never }), message);
});
