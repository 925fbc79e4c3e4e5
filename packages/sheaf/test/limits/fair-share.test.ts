import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { fairShare, type RateDemand } from "../../dist/limits/fair-share.js";

const live = (part: number): RateDemand => ({ live: part, bulk: 0 });
const bulk = (part: number): RateDemand => ({ live: 0, bulk: part });
const sharesOf = (demands: readonly RateDemand[]): number[] =>
  demands.map((own, i) => fairShare(own, demands.toSpliced(i, 1)));
const near = (shares: readonly number[], expected: readonly number[]): void =>
  assert.ok(shares.every((share, i) => Math.abs(share - expected[i]!) < 1e-9), String(shares)); // prettier-ignore

test("one alone has the whole; two that want all have half each; an idle one leaves it to the other", () => {
  for (const of of [live, bulk]) {
    near(sharesOf([of(0)]), [1]);
    near(sharesOf([of(1)]), [1]);
    near(sharesOf([of(1), of(1)]), [0.5, 0.5]);
    near(sharesOf([of(1), of(0)]), [1, 0]);
  }
});

test("one that needs little gets that, and the others divide the rest evenly", () => {
  near(sharesOf([live(0.1), live(1), live(1)]), [0.1, 0.45, 0.45]);
});

test("bulk divides what live calls leave, and gets a twentieth where they leave nothing", () => {
  near(sharesOf([live(0.7), bulk(1), bulk(1)]), [0.7, 0.15, 0.15]);
  near(sharesOf([live(0.7), bulk(0.1)]), [0.8, 0.2]);
  near(sharesOf([live(1), live(1), bulk(1)]), [0.475, 0.475, 0.05]);
  near(sharesOf([live(1), bulk(0.02)]), [0.98, 0.02]);
});

test("shares add up to the limit, and nobody gets less of what is there for a lane than an even part of it or its demand", () => {
  const part = fc.double({ min: 0, max: 1, noNaN: true });
  const demand = fc.record({ live: part, bulk: part });
  fc.assert(
    fc.property(fc.array(demand, { minLength: 1, maxLength: 30 }), (demands) => {
      const shares = sharesOf(demands);
      const sum = shares.reduce((a, b) => a + b);
      assert.ok(Math.abs(sum - 1) < 1e-9, `${sum}`);
      for (const [i, share] of shares.entries()) {
        const { live, bulk } = demands[i]!;
        const least = Math.min(live, 0.95 / demands.length) + Math.min(bulk, 0.05 / demands.length);
        assert.ok(share >= Math.min(least, 1 / demands.length) - 1e-9, `${share}, at least ${least}`);
        for (const [j, other] of shares.entries())
          assert.ok(live < demands[j]!.live || bulk < demands[j]!.bulk || share >= other - 1e-9);
      }
    }),
  );
});
