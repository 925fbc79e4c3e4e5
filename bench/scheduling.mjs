/**
 * `npm run bench -- scheduling [--items 3000] [--seeds 4] [--only WORD] [--random SEED] [--rows]`: auto, greedy, fixed windows and
 * adaptive through the real batcher on a virtual clock, against a per-workload oracle: the best of up to 40 hand-tuned
 * policies, found on another seed. Ratios to the oracle, mean / p99 of latency; auto against greedy on the same
 * arrivals. Workloads that auto was developed on, workloads held out, and 60 drawn at random are reported apart.
 */
import { parseArgs } from "node:util";
import { adaptive, auto, fixedWindow, greedy } from "sheaf";
import { simulate } from "sheaf/tuning";
import { machine } from "./lib/machine.mjs";
import { grid, heldOut, randomWorkloads, tuned } from "./lib/workloads.mjs";

const { values } = parseArgs({
  options: {
    items: { type: "string", default: "3000" },
    seeds: { type: "string", default: "4" },
    only: { type: "string", default: "" },
    random: { type: "string", default: "2026" },
    rows: { type: "boolean", default: false },
  },
});
const items = Number(values.items);
const seedCount = Number(values.seeds);
if (!(Number.isInteger(items) && items >= 100 && items <= 1e6 && Number.isInteger(seedCount) && seedCount >= 1)) {
  console.error("--items must be an integer, 100 to 1000000, and --seeds an integer >= 1");
  process.exit(2);
}
const seeds = Array.from({ length: seedCount }, (_, i) => i + 1);
const searchSeed = 101;
const others = {
  "window 5 ms": () => ({ policy: fixedWindow(), maxWaitMs: 5 }),
  "window 20 ms": () => ({ policy: fixedWindow(), maxWaitMs: 20 }),
  adaptive: () => ({ policy: adaptive(), maxWaitMs: 50 }),
};

const geometricMean = (values) => Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);

async function run({ cost, slots, maxBatchSize, arrivals }, options, seed) {
  const { latencyMs, throughputPerS } = await simulate({
    cost,
    concurrency: slots,
    maxBatchSize,
    maxQueueSize: Infinity,
    arrivals,
    items,
    seed,
    ...options,
  });
  return { mean: latencyMs.mean, p99: latencyMs.p99, throughputPerS };
}

async function average(workload, optionsOf, ownSeeds = seeds) {
  const sum = { mean: 0, p99: 0, throughputPerS: 0 };
  for (const seed of ownSeeds) {
    const result = await run(workload, optionsOf(), seed);
    for (const key of Object.keys(sum)) sum[key] += result[key] / ownSeeds.length;
  }
  return sum;
}

async function compare(workload) {
  let bestMean;
  let bestP99;
  for (const policyOf of grid(workload)) {
    const result = await run(workload, { policy: policyOf() }, searchSeed);
    if (bestMean === undefined || result.mean < bestMean.mean) bestMean = { ...result, policyOf };
    if (bestP99 === undefined || result.p99 < bestP99.p99) bestP99 = { ...result, policyOf };
  }
  const oracle = {
    mean: (await average(workload, () => ({ policy: bestMean.policyOf() }))).mean,
    p99: (await average(workload, () => ({ policy: bestP99.policyOf() }))).p99,
  };
  const row = { workload, oracle, oracleName: `${bestMean.policyOf().name} / ${bestP99.policyOf().name}` };
  row.auto = await average(workload, () => ({ policy: auto() }));
  row.singles = await average(workload, () => ({ policy: { name: "singles", decide: () => ({ run: 1 }) } }));
  row.greedy = await average(workload, () => ({ policy: greedy() }));
  for (const [name, optionsOf] of Object.entries(others)) row[name] = await average(workload, optionsOf, [1]);
  row.paired = row.auto.mean / row.greedy.mean;
  return row;
}

const policies = ["auto", "greedy", ...Object.keys(others)];
const ratio = (rows, policy, key) => geometricMean(rows.map((row) => row[policy][key] / row.oracle[key]));
const both = (rows, policy) => `${ratio(rows, policy, "mean").toFixed(3)} / ${ratio(rows, policy, "p99").toFixed(3)}`;

function printTable(title, rows) {
  console.log(`\n${title}: mean / p99 of latency ÷ the oracle's, geometric mean\n`);
  console.log(`| workloads | ${policies.join(" | ")} |\n|---|${policies.map(() => "---").join("|")}|`);
  const kindOf = ({ kind }) => (kind.startsWith("closed") ? "closed loops" : kind);
  const groups = { [`all ${rows.length}`]: rows };
  for (const row of rows) (groups[kindOf(row.workload)] ??= []).push(row);
  for (const row of rows) (groups[row.workload.profile] ??= []).push(row);
  for (const [name, group] of Object.entries(groups)) {
    console.log(`| ${name} | ${policies.map((policy) => both(group, policy)).join(" | ")} |`);
  }
}

function printRows(rows) {
  for (const row of rows) {
    const own = policies.map((policy) => `${policy} ${both([row], policy)}`).join(", ");
    console.log(`${row.workload.name}: ${own}; auto ÷ greedy ${row.paired.toFixed(3)}; oracle ${row.oracleName}`);
  }
}

let missed = 0;
function target(what, value, limit, atLeast = false) {
  if (!Number.isFinite(value)) return;
  const met = atLeast ? value >= limit : value <= limit;
  if (!met) missed++;
  console.log(`${met ? "met   " : "MISSED"}  ${what}: ${value.toFixed(3)} (${atLeast ? ">=" : "<="} ${limit})`);
}
const largest = (rows, valueOf) => rows.reduce((most, row) => Math.max(most, valueOf(row)), Number.NEGATIVE_INFINITY);

function printTargets(title, rows) {
  console.log(`\nTargets, ${title}\n`);
  const closed = rows.filter(({ workload }) => workload.load === undefined);
  const find = (...parts) => rows.find(({ workload }) => parts.every((part) => workload.name.includes(part)));
  const shapes = rows.filter(({ workload }) => workload.shape);
  target("mean ÷ oracle", ratio(rows, "auto", "mean"), 1.02);
  target("p99 ÷ oracle", ratio(rows, "auto", "p99"), 1.06);
  if (closed.length > 0) target("closed loops, p99 ÷ oracle", ratio(closed, "auto", "p99"), 1.08);
  const strict = rows.filter(({ workload: { kind, load = 0 } }) => /^(poisson|burst|closed)/.test(kind) && load <= 0.8);
  target(
    "poisson, burst, closed loops: worst mean ÷ greedy",
    largest(strict, (row) => row.paired),
    1.02,
  );
  target(
    "anywhere: worst mean ÷ greedy",
    largest(rows, (row) => row.paired),
    1.08,
  );
  const loop = find("gpu ", "closed loop of 4");
  if (loop)
    target(
      "closed loop of 4 on (10, 0.3): throughput ÷ greedy",
      loop.auto.throughputPerS / loop.greedy.throughputPerS,
      1.5,
      true,
    );
  const api = find("api", "poisson at 0.5");
  if (api) target("api at half load: mean ÷ greedy", api.paired, 0.9);
  for (const row of rows.filter(({ workload: { profile, kind } }) => profile === "pure" && kind === "poisson")) {
    target(`pure at ${row.workload.load}: mean ÷ M/D/1 on the same arrivals`, row.auto.mean / row.singles.mean, 1.05);
  }
  if (shapes.length > 0) target("super-linear, stairs, square root: mean ÷ oracle", ratio(shapes, "auto", "mean"), 1.1);
}

console.log(`${machine()}\nnpm run bench -- scheduling --items ${items} --seeds ${seedCount}`);
const groups = {
  "developed on": tuned,
  "held out": heldOut,
  [`drawn at random, seed ${values.random}`]: randomWorkloads(Number(values.random), 60),
};
for (const [title, workloads] of Object.entries(groups)) {
  const rows = [];
  for (const workload of workloads) {
    if (!workload.name.includes(values.only)) continue;
    rows.push(await compare(workload));
    if (process.stderr.isTTY) process.stderr.write(`\r${title}: ${rows.length} of ${workloads.length} `);
  }
  if (rows.length === 0) continue;
  printTable(title, rows);
  if (values.rows) printRows(rows);
  printTargets(title, rows);
}
process.exitCode = missed > 0 ? 1 : 0;
