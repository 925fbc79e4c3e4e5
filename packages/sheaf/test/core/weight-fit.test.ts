import assert from "node:assert/strict";
import { test } from "node:test";
import { fitWeights, type WeighedRun } from "../../dist/core/measure/weight-fit.js";
import { Random } from "../../dist/tuning/traffic/random.js";

/** Batches of 1 to 16 items whose weights differ a hundredfold. */
function runsOf(count: number, runMs: (run: WeighedRun, random: Random) => number, seed = 1): WeighedRun[] {
  const random = new Random(seed);
  return Array.from({ length: count }, () => {
    const size = 1 + Math.floor(16 * random.uniform());
    const weights = Array.from({ length: size }, () => Math.ceil(40 * Math.exp(1.7 * random.normal())));
    const run = {
      size,
      weight: weights.reduce((sum, each) => sum + each, 0),
      heaviest: Math.max(...weights),
      runMs: 0,
    };
    return { ...run, runMs: runMs(run, random) };
  });
}

const near = (value: number, expected: number, share: number): void =>
  assert.ok(Math.abs(value - expected) <= share * expected, `${value} is not ${expected}`);

test("tens of runs say what is fixed, what an item costs and what its weight does", () => {
  const fit = fitWeights(runsOf(40, ({ size, weight }) => 10 + 0.5 * size + 0.02 * weight))!;
  near(fit.fixedMs, 10, 0.02);
  near(fit.perItemMs, 0.5, 0.05);
  near(fit.perWeightMs, 0.02, 0.02);
  assert.equal(fit.padded, false);
});

test("a padded cost is told from a summed one", () => {
  const fit = fitWeights(runsOf(40, ({ size, heaviest }) => 10 + 0.02 * heaviest * size))!;
  assert.equal(fit.padded, true);
  near(fit.perWeightMs, 0.02, 0.02);
});

test("with scatter of a tenth the truth is in the ranges, and one pause in twenty does not move them far", () => {
  for (const seed of [1, 2, 3, 4, 5]) {
    const fit = fitWeights(
      runsOf(
        128,
        ({ weight }, random) => (10 + 0.02 * weight) * (1 + 0.1 * random.normal()) * (random.uniform() < 0.05 ? 10 : 1),
        seed,
      ),
    )!;
    near(fit.fixedMs, 10, 0.25);
    near(fit.perWeightMs, 0.02, 0.15);
    assert.ok(fit.perWeightMsRange[0] < 0.0215 && fit.perWeightMsRange[1] > 0.0185, `seed ${seed}`);
  }
});

test("a weight that explains nothing is dropped", () => {
  assert.equal(fitWeights(runsOf(128, ({ size }) => 10 + 0.5 * size)), undefined);
  assert.equal(
    fitWeights(runsOf(128, ({ size }, random) => (10 + 0.5 * size) * (1 + 0.2 * random.normal()))),
    undefined,
  );
});

test("weights that are all equal say no more than the size", () => {
  const runs = runsOf(128, ({ size }) => 10 + 0.5 * size).map((run) => ({ ...run, weight: 7 * run.size, heaviest: 7 }));
  assert.equal(fitWeights(runs), undefined);
});

test("nothing is believed of fewer than 16 runs", () => {
  assert.equal(fitWeights(runsOf(15, ({ weight }) => 10 + 0.02 * weight)), undefined);
});

test("what was believed stays while the runs look alike both ways", () => {
  const before = fitWeights(runsOf(64, ({ size, heaviest }) => 10 + 0.02 * heaviest * size));
  const alike = runsOf(64, ({ size }) => size).map((run) => ({ ...run, weight: run.size * run.heaviest }));
  const costed = alike.map((run) => ({ ...run, runMs: 10 + 0.02 * run.weight }));
  assert.equal(fitWeights(costed, before)!.padded, true);
});
