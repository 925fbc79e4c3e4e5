import assert from "node:assert/strict";
import { test } from "node:test";
import { planPasses, type PassCosts } from "../../dist/models/index.js";
import { seededRandom } from "../../dist/internal/tuning.js";

/** The cheapest time of all ways to cut the items in order of length. */
function leastByTrial(lengths: readonly number[], cost: PassCosts, maxPaddedLength: number): number {
  const sorted = lengths.toSorted((a, b) => a - b);
  let least = Infinity;
  for (let cuts = 0; cuts < 2 ** (sorted.length - 1); cuts++) {
    let totalMs = 0;
    let size = 0;
    for (const [place, length] of sorted.entries()) {
      size++;
      if (place < sorted.length - 1 && (cuts & (1 << place)) === 0) continue;
      const fits = size === 1 || size * length <= maxPaddedLength;
      totalMs += fits ? cost.of(size, length) : Infinity;
      size = 0;
    }
    least = Math.min(least, totalMs);
  }
  return least;
}

const totalOf = (passes: readonly number[][], lengths: readonly number[], cost: PassCosts): number =>
  passes.reduce((sum, pass) => sum + cost.of(pass.length, Math.max(...pass.map((index) => lengths[index]!))), 0);

const curves: Record<string, PassCosts> = {
  "a fixed part and each position": { of: (size, length) => 3.3 + 0.235 * size * length },
  attention: { of: (size, length) => 3 + 0.1 * size * length * (1 + length / 500) },
  "a cache that 500 positions fill": {
    of: (size, length) => 2 + 0.1 * size * length + 0.08 * Math.max(0, size * length - 500),
  },
  "steps of the batch size": { of: (size, length) => 5 * Math.ceil(size / 4) + 0.01 * length * size },
  "no fixed part": { of: (size, length) => 0.2 * size * length },
  "larger passes that are slower for each item": { of: (size, length) => 1 + 0.1 * length * size ** 1.3 },
};

for (const [name, cost] of Object.entries(curves))
  test(`no cut of eight items costs less, with ${name}`, () => {
    for (let seed = 1; seed <= 60; seed++) {
      const random = seededRandom(seed);
      const count = 1 + Math.floor(8 * random());
      const lengths = Array.from({ length: count }, () => Math.ceil(512 * random() ** 3));
      const maxPaddedLength = seed % 2 === 0 ? 16_384 : 700;
      const passes = planPasses(lengths, cost, { maxPaddedLength });
      const least = leastByTrial(lengths, cost, maxPaddedLength);
      const planned = totalOf(passes, lengths, cost);
      assert.ok(Math.abs(planned - least) <= 1e-9 * least, `seed ${seed}: ${planned} ms planned, ${least} ms possible`);
    }
  });

test("every item is in one pass, the indices of a pass rise, and short items come first", () => {
  const random = seededRandom(7);
  const lengths = Array.from({ length: 700 }, () => Math.ceil(300 * random()));
  const passes = planPasses(lengths, curves["attention"]!, { maxPaddedLength: 2000 });
  assert.deepEqual(
    passes.flat().sort((a, b) => a - b),
    lengths.map((_, index) => index),
  );
  let shortest = 0;
  for (const pass of passes) {
    const own = pass.map((index) => lengths[index]!);
    assert.deepEqual(
      pass.toSorted((a, b) => a - b),
      pass,
    );
    assert.ok(Math.min(...own) >= shortest);
    shortest = Math.max(...own);
    assert.ok(pass.length * shortest <= 2000);
  }
});

test("like lengths share a pass, unlike ones and those over the limit do not", () => {
  const cost = curves["a fixed part and each position"]!;
  assert.deepEqual(planPasses([8, 8, 8], cost), [[0, 1, 2]]);
  assert.deepEqual(planPasses([500, 5, 5], cost), [[1, 2], [0]]);
  assert.deepEqual(planPasses([50, 50], cost, { maxPaddedLength: 60 }), [[0], [1]]);
  assert.deepEqual(planPasses([50], cost, { maxPaddedLength: 10 }), [[0]]);
  assert.deepEqual(planPasses([], cost), []);
  for (const length of [0, -1, Number.NaN, Infinity])
    assert.throws(
      () => planPasses([5, length], cost),
      new RangeError(`lengths[1] must be a number > 0, got ${length}`),
    );
  assert.throws(() => planPasses([5], cost, { maxPaddedLength: 0 }), /maxPaddedLength must be a number > 0, got 0/);
});
