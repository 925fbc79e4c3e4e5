/**
 * `npm run prove -- verdicts [--seeds 100] [--first 1]`: what `stats().verdict` says, against the truth, on the real batcher
 * and a virtual clock. At most 1 % of the verdicts shown, and of the gains measured at the start, contradict the true speed-up by
 * more than a tenth; and showing none is not a way out. Exit code 1 where either is not so.
 */
import { parseArgs } from "node:util";
import { machine } from "../../bench/lib/machine.mjs";
import { asks, cases, count, isOutside, started } from "./lib/verdicts.mjs";

const { values } = parseArgs({
  options: { seeds: { type: "string", default: "100" }, first: { type: "string", default: "1" } },
});
const seeds = Number(values.seeds);
const firstSeed = Number(values.first);
if (!(Number.isInteger(seeds) && seeds >= 1 && seeds <= 10_000 && Number.isInteger(firstSeed))) {
  console.error("--seeds must be an integer, 1 to 10000, and --first an integer");
  process.exit(2);
}
console.log(`${machine()}\nnpm run prove -- verdicts --seeds ${seeds} --first ${firstSeed}\n`);

const total = { shown: 0, wrong: 0, owed: 0, given: 0, aloneless: 0, gave: 0 };
const wrongs = [];
console.log("case: verdicts shown of those asked for (wrong), at each ask");
for (const name of new Set(cases.map((one) => one.name))) {
  const result = await count(
    cases.filter((one) => one.name === name),
    { firstSeed, seeds },
  );
  wrongs.push(...result.wrongs);
  const byAsk = result.counts[name];
  for (const entry of Object.values(byAsk)) for (const key of Object.keys(total)) total[key] += entry[key];
  const cells = Object.keys(asks).map(
    (ask) => `${ask} ${byAsk[ask]?.shown ?? 0}/${byAsk[ask]?.asked ?? 0} (${byAsk[ask]?.wrong ?? 0})`,
  );
  const { owed, given } = byAsk["200 batches"] ?? { owed: 0, given: 0 };
  console.log(
    `${name}: ${cells.join(", ")}${owed > 0 ? `; owed after 200 batches and shown ${percent(given / owed)}` : ""}`,
  );
}
for (const { name, ask, ratio, traffic, seed, verdict, speedup, low, high, truth } of wrongs.slice(0, 40)) {
  const said = `${verdict} ${speedup.toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`;
  console.log(
    `wrong: ${name}${ratio === undefined ? "" : `, ${ratio} : 1`}, ${traffic}, ${ask}, seed ${seed}: ${said}, truth ${truth.toFixed(2)}`,
  );
}

const atStart = { asked: 0, shown: 0, wrong: 0 };
for (const { name: _, ...setting } of cases.filter(({ trouble }) => !trouble.startsWith("two lengths")))
  for (let seed = firstSeed; seed < firstSeed + seeds; seed++) {
    const gain = await started({ ...setting, seed });
    atStart.asked++;
    if (gain === undefined) continue;
    atStart.shown++;
    if (isOutside(gain)) atStart.wrong++;
  }

let broken = 0;
promise("wrong verdicts, of those shown", total.wrong / total.shown, 0.01);
promise("verdicts shown, of those owed", total.given / total.owed, 0.9, true);
promise("wrong gains at the start, of those shown", atStart.wrong / atStart.shown, 0.01);
promise("gains shown at the start, of those asked for", atStart.shown / atStart.asked, 0.75, true);
console.log(
  `of batches that never held one item alone, of those owed: ${percent(total.gave / total.aloneless)} (no promise)`,
);
process.exitCode = broken > 0 ? 1 : 0;

function promise(what, value, limit, atLeast = false) {
  const isKept = atLeast ? value >= limit : value <= limit;
  if (!isKept) broken++;
  console.log(
    `${isKept ? "kept  " : "BROKEN"}  ${what}: ${percent(value)} (${atLeast ? ">=" : "<="} ${percent(limit)})`,
  );
}

function percent(share) {
  return `${(100 * share).toFixed(2)} %`;
}
