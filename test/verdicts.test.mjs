import assert from "node:assert/strict";
import { test } from "node:test";
import { cases, count } from "../prove/lib/verdicts.mjs";

// A slice of `npm run prove -- verdicts`: a seed for each traffic, every other ratio.
const few = cases.filter(({ ratio = 0 }) => [0, 0.1, 0.5, 2, 10].includes(ratio));

test("of the verdicts shown, at most 1 in 100 contradicts the truth, and those owed are shown (seeds 11 to 16)", async () => {
  const { counts, wrongs } = await count(few, { firstSeed: 11, seeds: 6 });
  const entries = Object.values(counts).flatMap((byAsk) => Object.values(byAsk));
  const total = (key) => entries.reduce((sum, entry) => sum + entry[key], 0);
  assert.ok(total("shown") > 500, `${total("shown")} shown`);
  assert.ok(total("wrong") <= 0.01 * total("shown"), JSON.stringify(wrongs, undefined, 1));
  assert.ok(total("given") >= 0.9 * total("owed"), `${total("given")} of ${total("owed")} owed`);
});
