import assert from "node:assert/strict";
import { test } from "node:test";
import { cases, count, isOutside, started } from "../scripts/prove/lib/verdicts.mjs";

// A slice of `npm run prove -- verdicts`, whose sample is large enough for 0.9 of those owed: one seed, every other ratio.
const few = cases.filter(({ ratio = 0 }) => [0, 0.1, 0.5, 2, 10].includes(ratio));

test("of the verdicts shown, at most 1 in 100 contradicts the truth, and those owed are shown", async () => {
  const { counts, wrongs } = await count(few, { firstSeed: 7301, seeds: 1 });
  const entries = Object.values(counts).flatMap((byAsk) => Object.values(byAsk));
  const total = (key) => entries.reduce((sum, entry) => sum + entry[key], 0);
  assert.ok(total("shown") > 75, `${total("shown")} shown`);
  assert.ok(total("wrong") <= 0.01 * total("shown"), JSON.stringify(wrongs, undefined, 1));
  assert.ok(total("given") >= 0.7 * total("owed"), `${total("given")} of ${total("owed")} owed`);
});

test("of the gains measured at the start, at most 1 in 100 contradicts the truth, and most are shown", async () => {
  let [asked, shown] = [0, 0];
  const wrongs = [];
  for (const { name, ...setting } of cases.filter(({ trouble }) => !trouble.startsWith("two lengths")))
    for (let seed = 7301; seed <= 7304; seed++) {
      const gain = await started({ ...setting, seed });
      asked++;
      if (gain === undefined) continue;
      shown++;
      if (isOutside(gain)) wrongs.push({ name, ...setting, seed, ...gain });
    }
  assert.ok(
    wrongs.length <= 0.01 * shown,
    `${wrongs.length} of ${shown}: ${JSON.stringify(wrongs.slice(0, 20), undefined, 1)}`,
  );
  assert.ok(shown >= 0.7 * asked, `${shown} of ${asked} shown`);
});
