import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { auto, fixedWindow, greedy } from "../../dist/index.js";
import { simulate, type SimulationOptions } from "../../dist/tuning/index.js";
import type { Arrivals } from "../../dist/internal/tuning.js";

const gpu = { cost: { fixedMs: 10, perItemMs: 0.3 }, concurrency: 1 } as const;
const poisson = (ratePerS: number): Arrivals => ({ pattern: "poisson", ratePerS });

test("the same seed gives the same result, another seed another", async () => {
  const options = (seed: number): SimulationOptions => ({
    ...gpu,
    arrivals: { pattern: "burst", ratePerS: 400, onMs: 100, offMs: 300 },
    noise: { cv: 0.5, outlierRate: 0.01 },
    items: 3000,
    seed,
  });
  const first = await simulate(options(5));
  assert.deepEqual(await simulate(options(5)), first);
  assert.notEqual((await simulate(options(6))).latencyMs.mean, first.latencyMs.mean);
});

test("every pattern keeps its rate", async () => {
  const patterns: Arrivals[] = [
    poisson(500),
    { pattern: "periodic", ratePerS: 500 },
    { pattern: "burst", ratePerS: 500, onMs: 20, offMs: 60 },
    { pattern: "clump", ratePerS: 500, size: 8, spreadMs: 1 },
    { pattern: "ramp", fromPerS: 250, toPerS: 750, durationMs: 20_000 },
    { pattern: "step", fromPerS: 250, toPerS: 750, atMs: 10_000 },
  ];
  for (const arrivals of patterns) {
    const { durationMs, items } = await simulate({ ...gpu, arrivals, items: 10_000 });
    assert.equal(items.ok, 10_000);
    const perS = 1e7 / durationMs;
    assert.ok(Math.abs(perS / 500 - 1) < 0.1, `${arrivals.pattern}: ${perS} per second, 500 asked for`);
  }
});

test("a trace calls at its moments: a lone call takes exactly s(1), three at once exactly s(3)", async () => {
  const { latencyMs, batchSizes } = await simulate({
    ...gpu,
    arrivals: { pattern: "trace", atMs: [5, 1000, 1000, 1000] },
    policy: greedy(),
    warmUp: 0,
  });
  assert.deepEqual(
    [...batchSizes],
    [
      [1, 1],
      [3, 1],
    ],
  );
  assert.ok(Math.abs(latencyMs.mean - (10.3 + 3 * 10.9) / 4) < 1e-9, String(latencyMs.mean));
});

test("a closed loop never has more calls than clients in it, and makes exactly its calls", async () => {
  const { items, batchSizes, latencyMs } = await simulate({
    ...gpu,
    arrivals: { pattern: "closed", clients: 6, thinkMs: 1 },
    items: 2000,
  });
  assert.equal(items.ok, 2000);
  assert.ok(Math.max(...batchSizes.keys()) <= 6);
  assert.ok(latencyMs.p50 >= 10.3);
});

test("what a policy keeps forever is flushed in the end, and says so", async () => {
  const { items, reasons } = await simulate({
    ...gpu,
    arrivals: poisson(100),
    policy: fixedWindow({ trigger: "size" }),
    items: 100,
  });
  assert.equal(items.ok, 100);
  assert.equal(reasons.flush, 1);
});

test("calls that end otherwise are counted by how they ended", async () => {
  const overloaded = { ...gpu, arrivals: poisson(10_000), items: 4000 };
  const late = await simulate({ ...overloaded, timeoutMs: 60 });
  assert.ok(late.items.timeout > 1000);
  assert.equal(late.items.ok + late.items.timeout, 4000);
  assert.ok(late.latencyMs.max <= 60, "no late result counts as a result");
  const full = await simulate({ ...overloaded, maxQueueSize: 64 });
  assert.ok(full.items.rejected > 1000);
  assert.equal(full.items.ok + full.items.rejected, 4000);
});

test("a table of costs is interpolated, and its last slope goes on", async () => {
  const at = async (size: number): Promise<number> => {
    const atMs = Array.from({ length: size }, () => 1);
    const { latencyMs } = await simulate({
      arrivals: { pattern: "trace", atMs },
      cost: {
        table: [
          [4, 10],
          [1, 4],
          [8, 12],
        ],
      },
      policy: greedy(),
      warmUp: 0,
    });
    return latencyMs.max;
  };
  for (const [size, ms] of [
    [1, 4],
    [2, 6],
    [4, 10],
    [6, 11],
    [8, 12],
    [10, 13],
  ] as const) {
    assert.ok(Math.abs((await at(size)) - ms) < 1e-9, `size ${size}`);
  }
});

test("noise keeps the mean run time, outliers raise it by their share", async () => {
  const base = { ...gpu, arrivals: { pattern: "closed", clients: 1 }, items: 20_000 } as const;
  const noisy = await simulate({ ...base, noise: { cv: 1 } });
  assert.ok(Math.abs(noisy.latencyMs.mean / 10.3 - 1) < 0.03, String(noisy.latencyMs.mean));
  const outliers = await simulate({ ...base, noise: { outlierRate: 0.02, outlierFactor: 10 } });
  assert.ok(Math.abs(outliers.latencyMs.mean / (10.3 * 1.18) - 1) < 0.05, String(outliers.latencyMs.mean));
});

test("priorities are drawn by their shares, and immediate calls are faster than bulk", async () => {
  const { byPriority } = await simulate({
    ...gpu,
    arrivals: poisson(1500),
    priorities: { immediate: 0.1, bulk: 0.5 },
    items: 10_000,
  });
  const [immediate, interactive, bulk] = [byPriority.immediate!, byPriority.interactive!, byPriority.bulk!];
  assert.ok(immediate.latencyMs.mean < interactive.latencyMs.mean);
  assert.ok(interactive.latencyMs.mean < bulk.latencyMs.mean);
  assert.deepEqual(Object.keys(byPriority), ["immediate", "interactive", "bulk"]);
});

test("auto beats greedy by half in a closed loop of 4: the callers do not lock into halves", async () => {
  const run = (policy: SimulationOptions["policy"]): Promise<{ throughputPerS: number }> =>
    simulate({ ...gpu, arrivals: { pattern: "closed", clients: 4, thinkMs: 0.2 }, items: 8000, policy });
  const ratio = (await run(auto())).throughputPerS / (await run(greedy())).throughputPerS;
  assert.ok(ratio >= 1.5, `${ratio} times greedy's throughput`);
});

test("where slots have little to gain by larger batches auto does not hold, and is not behind greedy", async () => {
  const cost = (size: number): number => 3.77 + 0.546 * size;
  const capacityPerS = (2 * 32_000) / cost(32);
  const mean = async (policy: SimulationOptions["policy"], seed: number): Promise<number> => {
    const arrivals = poisson(0.84 * capacityPerS);
    return (await simulate({ cost, concurrency: 2, arrivals, items: 4000, seed, policy })).latencyMs.mean;
  };
  for (const seed of [1, 2, 3]) {
    const ratio = (await mean(auto(), seed)) / (await mean(greedy(), seed));
    assert.ok(ratio <= 1.05, `seed ${seed}: ${ratio} times greedy's mean`);
  }
});

test("options that would make a simulation empty, endless or nonsense are refused with what they got", async () => {
  const ends: readonly [Partial<SimulationOptions>, RegExp][] = [
    [{ arrivals: undefined as never }, /arrivals must be .*got undefined/],
    [{ arrivals: poisson(0) }, /ratePerS of arrivals must be a number > 0, got 0/],
    [{ arrivals: { pattern: "closed", clients: 1.5 } }, /clients must be an integer, 1 to 10000000, got 1.5/],
    [{ cost: { table: [] } }, /table must hold at least one/],
    [{ warmUp: 1 }, /warmUp must be a share, 0 <= warmUp < 1, got 1/],
    [{ arrivals: { pattern: "often" } as never }, /pattern of arrivals must be "poisson".*got "often"/],
    [{ arrivals: poisson(1e-308) }, /next moment of pattern "poisson" must be .*got Infinity/],
    [{ arrivals: { pattern: "clump", ratePerS: 1, size: 1e300 } }, /size of a clump must be .*got 1e\+300/],
    [{ arrivals: { pattern: "clump", ratePerS: 1, spreadMs: Number.NaN } }, /spreadMs of a clump must be .*got NaN/],
    [{ arrivals: { pattern: "step", fromPerS: 0, toPerS: 1, atMs: 1e300 } }, /next moment of pattern "step"/],
    [{ arrivals: { pattern: "ramp", fromPerS: 0, toPerS: 1, durationMs: 1e300 } }, /next moment of pattern "ramp"/],
    [
      { arrivals: { pattern: "ramp", fromPerS: -1, toPerS: 1, durationMs: 1 } },
      /fromPerS of arrivals must be .*got -1/,
    ],
    [{ arrivals: { pattern: "closed", clients: Infinity } }, /clients must be .*got Infinity/],
    [{ arrivals: { pattern: "closed", clients: 1, thinkMs: -1 } }, /thinkMs of arrivals must be .*got -1/],
    [{ arrivals: { pattern: "closed", clients: 1, thinkMs: Infinity } }, /thinkMs of arrivals must be .*got Infinity/],
    [{ arrivals: { pattern: "trace", atMs: [5, 1] } }, /atMs\[1\] of a trace must be .*not before.*got 1/],
    [{ arrivals: { pattern: "trace", atMs: [Number.NaN] } }, /atMs\[0\] of a trace must be .*got NaN/],
    [{ arrivals: { pattern: "trace", atMs: [] } }, /items must be an integer, 1 to 10000000, got 0/],
    [{ arrivals: { pattern: "trace", atMs: "abc" as never } }, /atMs of a trace must be an array.*got "abc"/],
    [{ cost: undefined as never }, /cost must be .*got undefined/],
    [{ cost: { fixedMs: Infinity, perItemMs: 0 } }, /must be numbers >= 0, got Infinity and 0/],
    [{ cost: () => Number.NaN }, /the cost of 1 items at .* must be .*got NaN/],
    [{ cost: () => -1 }, /the cost of 1 items at .* must be .*got -1/],
    [{ cost: () => Infinity }, /the cost of 1 items at .* must be .*got Infinity/],
    [{ cost: { table: [[0, 1]] } }, /a size of the table must be a number > 0, got 0/],
    [{ cost: { table: [[1, -1]] } }, /the run time of size 1 in the table must be .*got -1/],
    [{ cost: { table: [5 as never] } }, /table must hold at least one \[size, runMs\] and nothing else/],
    [{ noise: { cv: -1 } }, /noise.cv must be .*got -1/],
    [{ noise: { outlierRate: 2 } }, /noise.outlierRate must be a share, 0 to 1, got 2/],
    [{ noise: { outlierRate: 1, outlierFactor: Infinity } }, /noise.outlierFactor must be .*got Infinity/],
    [{ priorities: { bulk: -0.5 } }, /priorities.bulk must be a share, 0 to 1, got -0.5/],
    [{ priorities: { immediate: 0.7, bulk: 0.7 } }, /priorities.immediate and .bulk together .*got 1.4/],
    [{ seed: Number.NaN }, /seed must be an integer, got NaN/],
    [{ items: 1e300 }, /items must be .*got 1e\+300/],
  ];
  for (const [options, message] of ends) {
    await assert.rejects(simulate({ ...gpu, arrivals: poisson(100), ...options }), message, String(message));
  }
});

test("what a cost function throws is what the simulation rejects with", async () => {
  const boom = new Error("boom");
  const cost = (): number => {
    throw boom;
  };
  await assert.rejects(simulate({ arrivals: poisson(100), cost, items: 50 }), boom);
});

test("a table whose run times fall does not go on falling below what was measured", async () => {
  const { latencyMs } = await simulate({
    arrivals: { pattern: "trace", atMs: Array.from({ length: 1000 }, () => 1) },
    cost: {
      table: [
        [1, 10],
        [16, 1],
      ],
    },
    policy: greedy(),
    maxBatchSize: Infinity,
    warmUp: 0,
  });
  assert.equal(latencyMs.max, 1);
});

test("a ramp from next to nothing comes at its rate, and so does a step far away", async () => {
  for (const arrivals of [
    { pattern: "ramp", fromPerS: 0, toPerS: 1e9, durationMs: 1e4 },
    { pattern: "step", fromPerS: 0, toPerS: 1e9, atMs: 1e9 },
  ] satisfies Arrivals[]) {
    const { items, durationMs } = await simulate({ ...gpu, arrivals, items: 500 });
    assert.equal(items.ok, 500);
    assert.ok(durationMs < 1000, `${arrivals.pattern}: ${durationMs} ms`);
  }
});

test("runs of any length warn of no stall: a simulated run calls no batcher, and ends", async (t) => {
  const warn = t.mock.method(console, "warn", () => {});
  const options = { cost: { fixedMs: 60_000, perItemMs: 1 }, arrivals: poisson(5), items: 100 };
  const { items, runs } = await simulate({ ...options, policy: fixedWindow(), maxWaitMs: 20, concurrency: 1 });
  assert.equal(items.ok, 100);
  assert.ok(runs > 1, "items wait for a slot");
  assert.equal(warn.mock.callCount(), 0);
});

test("without process and setImmediate, as in a browser, the result is the same", async () => {
  const options = { ...gpu, arrivals: poisson(700), items: 400, seed: 3 };
  const tuning = new URL("../../dist/tuning/index.js", import.meta.url).href;
  const script = `
    const { process, console } = globalThis;
    for (const name of ["process", "setImmediate"]) delete globalThis[name];
    const { simulate } = await import(${JSON.stringify(tuning)});
    const { latencyMs, events } = await simulate(${JSON.stringify(options)});
    console.log(JSON.stringify({ latencyMs, events }));
    process.exit();`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script]);
  const { latencyMs, events } = await simulate(options);
  assert.deepEqual(JSON.parse(stdout), { latencyMs, events });
});
