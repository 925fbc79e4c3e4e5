/**
 * `npm run bench -- auto-constants [--items 1000] [--seeds 1] [--only WORD]`: what each constant of auto decides. Halves and
 * doubles one after the other in a copy of the built policies, and prints latency relative to auto as it is, mean / p99,
 * geometric mean over all workloads of `bench -- scheduling`, with the worst workload's mean. On the virtual clock: the
 * figures do not depend on the machine. A constant whose row reads 1.000 is a bound that these workloads do not reach.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { simulate } from "sheaf/tuning";
import { root } from "../scripts/lib/files.mjs";
import { parsed } from "../scripts/lib/imports.mjs";
import { machine, table } from "./lib/machine.mjs";
import { heldOut, randomWorkloads, tuned } from "./lib/workloads.mjs";

const { values } = parseArgs({
  options: {
    items: { type: "string", default: "1000" },
    seeds: { type: "string", default: "1" },
    only: { type: "string", default: "" },
  },
});
const items = Number(values.items);
const seeds = Number(values.seeds);
if (!(Number.isInteger(items) && items >= 100 && items <= 1e6 && Number.isInteger(seeds) && seeds >= 1)) {
  console.error("--items must be an integer, 100 to 1000000, and --seeds an integer >= 1");
  process.exit(2);
}
const workloads = [...tuned, ...heldOut, ...randomWorkloads(2026, 60)];
const built = `${root}/packages/sheaf/dist`;

/** What constants.ts says, built: `export const name = 16;`. */
const file = "policies/auto/constants.js";
const source = readFileSync(join(built, file), "utf8");
const constants = parsed(source, file)
  .program.body.flatMap(({ declaration }) => declaration?.declarations ?? [])
  .map(({ id, init }) => ({ name: id.name, value: init.value, start: init.start, end: init.end }))
  .filter(({ name }) => name.includes(values.only));

mkdirSync(`${root}/artifacts`, { recursive: true });
const copies = mkdtempSync(`${root}/artifacts/constants-`);
process.on("exit", () => rmSync(copies, { recursive: true }));

/** `auto()` of a copy in which one constant has another value. */
async function autoWith({ name, start, end }, value) {
  const copy = join(copies, `${name}-${value}`);
  for (const folder of ["policies", "shared"]) cpSync(`${built}/${folder}`, join(copy, folder), { recursive: true });
  writeFileSync(join(copy, file), source.slice(0, start) + value + source.slice(end));
  return (await import(pathToFileURL(join(copy, "policies/auto/index.js")))).auto;
}

async function latencies(auto) {
  const all = [];
  for (const { cost, slots, maxBatchSize, arrivals } of workloads)
    for (let seed = 1; seed <= seeds; seed++) {
      const run = { cost, concurrency: slots, maxBatchSize, maxQueueSize: Infinity, arrivals, items, seed };
      all.push((await simulate({ ...run, policy: auto() })).latencyMs);
    }
  return all;
}

const geometricMean = (numbers) => Math.exp(numbers.reduce((sum, value) => sum + Math.log(value), 0) / numbers.length);
function compared(own, reference) {
  const ratios = (key) => own.map((latencyMs, index) => latencyMs[key] / reference[index][key]);
  const shown = (number) => number.toFixed(3);
  const worst = Math.max(...ratios("mean"));
  return `${shown(geometricMean(ratios("mean")))} / ${shown(geometricMean(ratios("p99")))}, worst ${shown(worst)}`;
}

console.log(`${machine()}\nnpm run bench -- auto-constants --items ${items} --seeds ${seeds}\n`);
const reference = await latencies((await import(pathToFileURL(`${built}/policies/auto/index.js`))).auto);
const rows = [["constant", "value", "half", "double"]];
for (const constant of constants) {
  const row = [constant.name, String(constant.value)];
  for (const factor of [0.5, 2])
    row.push(compared(await latencies(await autoWith(constant, factor * constant.value)), reference));
  rows.push(row);
  if (process.stderr.isTTY) process.stderr.write(`\r${rows.length - 1} of ${constants.length} `);
}
console.log(table(rows));
