import assert from "node:assert/strict";
import { test } from "node:test";
import { recommend } from "sheaf/tuning";
import { measuredGain } from "../../dist/load/measured-gain.js";

/** A cost of 10.3 ms for one item and 27.4 ms for 58, each median known to `error`. */
const measured = (error: number) => ({
  fixedMs: 10,
  perItemMs: 0.3,
  r2: 1,
  table: [
    [1, 10.3, error],
    [8, 12.4, error],
    [58, 27.4, error],
  ] as const,
});

test("a gain is said as a person says it, with its range", () => {
  const costModel = measured(0.01);
  const advice = recommend(costModel, { ratePerS: 500 });
  assert.deepEqual(measuredGain({ costModel }, advice), {
    sentence: "58 items in one run take 27.4 ms instead of 597 ms one by one (21.8×, 95 % range 21.5× to 22.1×)",
    isSettled: true,
  });
});

test("few runs, and so a range that reaches across the least gain, settle nothing", () => {
  const flat = (error: number) => ({ fixedMs: 0.01, perItemMs: 3, r2: 1, table: [[1, 3.01, error], [16, 47, error]] as const }); // prettier-ignore
  for (const [error, isSettled] of [
    [0.01, true],
    [0.3, false],
  ] as const) {
    const advice = recommend(flat(error), { ratePerS: 100 });
    assert.equal(advice.reason, "no-fixed-part");
    assert.equal(measuredGain({ costModel: flat(error) }, advice)!.isSettled, isSettled);
  }
  const small = { fixedMs: 1, perItemMs: 3, r2: 1, table: [[1, 4, 0.2], [16, 49, 0.2]] as const }; // prettier-ignore
  assert.equal(measuredGain({ costModel: small }, recommend(small, { ratePerS: 200 }))!.isSettled, false);
});

test("a recommendation that rests on no gain has none to show", () => {
  const costModel = measured(0.01);
  assert.equal(measuredGain({ costModel }, recommend(costModel, { ratePerS: 1 })), undefined);
  assert.equal(measuredGain({ costModel }, recommend(costModel, { ratePerS: 500, order: "strict" })), undefined);
});
