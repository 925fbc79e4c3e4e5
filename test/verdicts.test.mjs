import assert from "node:assert/strict";
import { test } from "node:test";
import { cases, count, isOutside, started } from "../prove/lib/verdicts.mjs";

// A slice of `npm run prove -- verdicts`: a seed for each traffic, every other ratio.
const few = cases.filter(({ ratio = 0 }) => [0, 0.1, 0.5, 2, 10].includes(ratio));

// Nobody tuned on the second seeds.
for (const firstSeed of [11, 7301])
  test(`of the verdicts shown, at most 1 in 100 contradicts the truth, and those owed are shown (seeds ${firstSeed} to ${firstSeed + 5})`, async () => {
    const { counts, wrongs } = await count(few, { firstSeed, seeds: 6 });
    const entries = Object.values(counts).flatMap((byAsk) => Object.values(byAsk));
    const total = (key) => entries.reduce((sum, entry) => sum + entry[key], 0);
    assert.ok(total("shown") > 500, `${total("shown")} shown`);
    assert.ok(total("wrong") <= 0.01 * total("shown"), JSON.stringify(wrongs, undefined, 1));
    assert.ok(total("given") >= 0.9 * total("owed"), `${total("given")} of ${total("owed")} owed`);
  });

test("of the gains measured at the start, at most 1 in 100 contradicts the truth, and nearly all are shown (seeds 7301 to 7340)", async () => {
  let [asked, shown] = [0, 0];
  const wrongs = [];
  for (const { name, ...setting } of cases.filter(({ trouble }) => !trouble.startsWith("two lengths")))
    for (let seed = 7301; seed <= 7340; seed++) {
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
  assert.ok(shown >= 0.75 * asked, `${shown} of ${asked} shown`);
});
