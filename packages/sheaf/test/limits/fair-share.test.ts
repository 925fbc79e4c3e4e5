import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { fairShare } from "../../dist/limits/fair-share.js";

test("one alone has the whole; two that want all have half each; an idle one leaves it to the other", () => {
  assert.equal(fairShare(0, []), 1);
  assert.equal(fairShare(1, []), 1);
  assert.equal(fairShare(1, [1]), 0.5);
  assert.equal(fairShare(1, [0]), 1);
  assert.equal(fairShare(0, [1]), 0);
});

test("one that needs little gets that, and the others divide the rest evenly", () => {
  const demands = [0.1, 1, 1];
  assert.deepEqual(
    demands.map((own, i) => fairShare(own, demands.toSpliced(i, 1))),
    [0.1, 0.45, 0.45],
  );
});

test("shares add up to the limit, none with a larger demand gets less, and nobody gets less than an even part of it or its demand", () => {
  const demand = fc.double({ min: 0, max: 1, noNaN: true });
  fc.assert(
    fc.property(fc.array(demand, { minLength: 1, maxLength: 30 }), (demands) => {
      const shares = demands.map((own, i) => fairShare(own, [...demands.slice(0, i), ...demands.slice(i + 1)]));
      const sum = shares.reduce((a, b) => a + b);
      assert.ok(Math.abs(sum - 1) < 1e-9, `${sum}`);
      for (const [i, share] of shares.entries()) {
        assert.ok(share >= Math.min(demands[i]!, 1 / demands.length) - 1e-9);
        for (const [j, other] of shares.entries()) assert.ok(demands[i]! < demands[j]! || share >= other - 1e-9);
      }
    }),
  );
});
