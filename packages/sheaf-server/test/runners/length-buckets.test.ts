import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { lengthBuckets } from "../../dist/runners/text/length-buckets.js";

test("every text is in exactly one run, runs stay within the budget, and padding is bounded", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 512 }), { maxLength: 100 }),
      fc.integer({ min: 512, max: 20_000 }),
      (lengths, most) => {
        const runs = lengthBuckets(lengths, most);
        assert.deepEqual(
          runs.flat().toSorted((a, b) => a - b),
          lengths.map((_, i) => i),
        );
        for (const run of runs) {
          const longest = Math.max(...run.map((index) => lengths[index]!));
          const padded = longest * run.length;
          const real = run.reduce((sum, index) => sum + lengths[index]!, 0);
          assert.ok(run.length > 0 && padded <= Math.max(most, longest));
          assert.ok(padded < 256 || 1 - real / padded <= 0.25, `${real} of ${padded}`);
        }
      },
    ),
    { seed: 7, numRuns: 500 },
  );
});

test("texts of one length run together; a long one does not pad short ones", () => {
  assert.deepEqual(lengthBuckets([8, 8, 8], 16_384), [[0, 1, 2]]);
  assert.deepEqual(lengthBuckets([500, 5, 5], 16_384), [[1, 2], [0]]);
  assert.deepEqual(lengthBuckets([], 100), []);
});
