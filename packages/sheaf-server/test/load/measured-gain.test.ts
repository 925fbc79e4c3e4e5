import assert from "node:assert/strict";
import { test } from "node:test";
import { recommend } from "sheaf/tuning";
import { gainSentence } from "../../dist/load/tune/measured-gain.js";

/** A cost of 10.3 ms for one item and 27.4 ms for 58, each median known to 1 %. */
const costModel = {
  fixedMs: 10,
  perItemMs: 0.3,
  r2: 1,
  table: [
    [1, 10.3, 0.01],
    [8, 12.4, 0.01],
    [58, 27.4, 0.01],
  ] as const,
};

test("a gain is written in plain words, with its range", () => {
  assert.equal(
    gainSentence(costModel, recommend(costModel, { ratePerS: 500 })),
    "58 items in one run take 27.4 ms instead of 597 ms one by one (21.8×, 95 % range 21.5× to 22.1×)",
  );
});

test("a recommendation that rests on no gain has none to show", () => {
  assert.equal(gainSentence(costModel, recommend(costModel, { ratePerS: 1 })), undefined);
  assert.equal(gainSentence(costModel, recommend(costModel, { ratePerS: 500, order: "strict" })), undefined);
});
