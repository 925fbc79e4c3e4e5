import assert from "node:assert/strict";
import { test } from "node:test";
import { measurePasses, PassCost, planPasses, type PassCosts } from "../../dist/models/index.js";
import { manualClock } from "../../dist/testing/index.js";
import { seededRandom } from "../../dist/internal/tuning.js";

/** An encoder on two cores: a fixed part, positions, attention, and a cache that 600 positions fill. */
const encoder: PassCosts = {
  of: (size, length) => {
    const padded = size * length;
    return 2 + 0.1 * padded * (1 + length / 2000) + 0.06 * Math.max(0, padded - 600);
  },
};
/** Another machine and model: little fixed part, no cache. */
const smallModel: PassCosts = { of: (size, length) => 0.05 + 0.004 * size * length };

const totalOf = (passes: readonly number[][], lengths: readonly number[], cost: PassCosts): number =>
  passes.reduce((sum, pass) => sum + cost.of(pass.length, Math.max(...pass.map((index) => lengths[index]!))), 0);

/** Batches of 32 texts of mixed lengths, run as `cost` says, which learns from their true times. */
function traffic(cost: PassCost, truth: PassCosts, batches: number, seed: number, outliers = 0): void {
  const random = seededRandom(seed);
  for (let batch = 0; batch < batches; batch++) {
    const lengths = Array.from({ length: 32 }, () => Math.ceil(8 * 64 ** random()));
    for (const pass of planPasses(lengths, cost)) {
      const longest = Math.max(...pass.map((index) => lengths[index]!));
      const noise = random() < outliers ? 3 + 20 * random() : 0.95 + 0.1 * random();
      cost.learn(pass.length, longest, truth.of(pass.length, longest) * noise);
    }
  }
}

/** How much longer the passes planned by `cost` take than the best ones, over lists of 32. */
function lossOf(cost: PassCosts, truth: PassCosts): number {
  const random = seededRandom(99);
  let [planned, best] = [0, 0];
  for (let list = 0; list < 40; list++) {
    const lengths = Array.from({ length: 32 }, () => Math.ceil(8 * 64 ** random()));
    planned += totalOf(planPasses(lengths, cost), lengths, truth);
    best += totalOf(planPasses(lengths, truth), lengths, truth);
  }
  return planned / best - 1;
}

for (const [name, truth] of Object.entries({ encoder, smallModel }))
  test(`after 50 batches passes are within 3 % of the best, also beside slow outliers (${name})`, () => {
    for (const outliers of [0, 0.05]) {
      const cost = new PassCost();
      traffic(cost, truth, 50, 1, outliers);
      const loss = lossOf(cost, truth);
      assert.ok(loss < 0.03, `${(100 * loss).toFixed(1)} % with outliers ${outliers}`);
    }
  });

test("the expected time is near the measured one where passes ran, at most 15 % off", () => {
  const cost = new PassCost();
  traffic(cost, encoder, 100, 2);
  for (const [size, length] of [
    [1, 100],
    [1, 400],
    [8, 16],
    [4, 50],
  ] as const) {
    const off = cost.of(size, length) / encoder.of(size, length) - 1;
    assert.ok(Math.abs(off) < 0.15, `${size} × ${length}: ${(100 * off).toFixed(1)} %`);
  }
});

test("long items run one by one where that is cheaper", () => {
  const cost = new PassCost();
  for (let round = 0; round < 20; round++)
    for (const size of [1, 2, 4, 8]) cost.learn(size, 420, encoder.of(size, 420));
  const lengths = new Array<number>(8).fill(420);
  assert.deepEqual(planPasses(lengths, cost), planPasses(lengths, encoder));
  assert.equal(planPasses(lengths, cost).length, 8);
});

test("a machine that becomes three times as slow is followed within 60 batches", () => {
  const cost = new PassCost();
  traffic(cost, encoder, 50, 4);
  const slow: PassCosts = { of: (size, length) => 3 * encoder.of(size, length) };
  traffic(cost, slow, 60, 5);
  const off = cost.of(1, 100) / slow.of(1, 100) - 1;
  assert.ok(Math.abs(off) < 0.15, `${(100 * off).toFixed(1)} %`);
  assert.ok(lossOf(cost, slow) < 0.03);
});

test("one pass that took a thousand times as long changes an expectation by less than 5 %", () => {
  const cost = new PassCost();
  traffic(cost, encoder, 20, 6);
  const before = cost.of(8, 20);
  cost.learn(8, 20, 1000 * before);
  assert.ok(cost.of(8, 20) < 1.05 * before);
});

test("invalid times teach nothing, and the largest and smallest passes have an expectation", () => {
  const cost = new PassCost();
  cost.learn(1, 16, 4);
  const before = cost.of(1, 16);
  for (const ms of [0, -1, Number.NaN, Infinity]) cost.learn(1, 16, ms);
  cost.learn(0, 16, 5);
  cost.learn(1, 0, 5);
  assert.equal(cost.of(1, 16), before);
  for (const [size, length] of [
    [1, 1],
    [1, 1_000_000],
    [100_000, 100_000],
  ] as const)
    assert.ok(cost.of(size, length) > 0 && cost.of(size, length) < Infinity);
});

test("at the start passes are measured within the budget, and cuts are within 10 % of the best from then on", async () => {
  for (const factor of [0.2, 1, 5]) {
    const truth: PassCosts = { of: (size, length) => factor * encoder.of(size, length) };
    const clock = manualClock();
    const cost = new PassCost();
    const shapes: string[] = [];
    const run = async (size: number, length: number): Promise<void> => {
      shapes.push(`${size} × ${length}`);
      clock.advance(truth.of(size, length));
    };
    await measurePasses(cost, run, { maxLength: 512, clock });
    // What a first guess of a pass does not know, and the first pass, which is not counted.
    assert.ok(clock.now() <= 300 + truth.of(1, 16) + truth.of(1, 64), `${clock.now()} ms`);
    assert.ok(shapes.length > 4);
    const loss = lossOf(cost, truth);
    assert.ok(loss < 0.1, `${(100 * loss).toFixed(1)} % at ${factor}`);
  }
});

test("a model of short texts, or one at a time, is measured by what it takes", async () => {
  const seen = new Set<string>();
  const clock = manualClock();
  await measurePasses(
    new PassCost(),
    async (size, length) => {
      seen.add(`${size} × ${length}`);
      clock.advance(1);
    },
    { maxLength: 40, maxSize: 1, clock },
  );
  assert.deepEqual([...seen], ["1 × 16", "1 × 40"]);
  await assert.rejects(
    measurePasses(new PassCost(), async () => undefined, { maxLength: 0.5 }),
    new RangeError("maxLength must be an integer >= 1, got 0.5"),
  );
});
