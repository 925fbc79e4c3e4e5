/**
 * `npm run bench -- core [--rounds 5] [--skip-features] [--skip-peers]`: CPU and bytes a call of the core, beside its
 * peers and beside the floor of "array push + Promise". Every contender runs in a process of its own, in rounds that
 * alternate, and is compared with dataloader in the same round: a machine that slows down slows both.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { features, libraries } from "./core-contenders.mjs";
import { bundledKb } from "./lib/bundled-kb.mjs";
import { machine, median, table } from "./lib/machine.mjs";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    "skip-features": { type: "boolean", default: false },
    "skip-peers": { type: "boolean", default: false },
  },
});
const rounds = Number(values.rounds);
if (!Number.isInteger(rounds) || rounds < 1 || rounds > 100) {
  console.error(`--rounds must be an integer from 1 to 100, got ${JSON.stringify(values.rounds)}`);
  process.exit(2);
}

const here = fileURLToPath(new URL(".", import.meta.url));
if (!existsSync(`${here}/peers/libraries/node_modules`)) {
  const { status } = spawnSync("npm", ["ci", "--no-audit", "--no-fund"], {
    cwd: `${here}/peers/libraries`,
    stdio: "inherit",
  });
  if (status !== 0) process.exit(1);
}

const targets = {
  "sheaf greedy": { wave: 1, flight: 0.75, bytes: 0.8 },
  "sheaf default": { wave: 1.5, flight: 1, bytes: undefined },
};
const scenarios = [
  { name: "waves of 1,000, batch 32", kind: "wave", calls: 1_000, batch: 32 },
  { name: "waves of 1,000, batch 100", kind: "wave", calls: 1_000, batch: 100 },
  { name: "20,000 in flight, batch 32", kind: "flight", calls: 20_000, batch: 32 },
];
const contenders = values["skip-peers"]
  ? ["sheaf greedy", "sheaf default", "floor", "dataloader"]
  : ["sheaf greedy", "sheaf default", ...libraries];

console.log(`${machine()}\nnpm run bench -- core --rounds ${rounds}\n`);
console.log(`createBatcher and greedy() take ${bundledKb().toFixed(1)} kB, minified and gzipped\n`);
for (const scenario of scenarios) compare(scenario, contenders, "dataloader", targets);
if (!values["skip-features"]) {
  const scenario = { ...scenarios[0], name: "What each feature costs when used (waves of 1,000, batch 32)" };
  compare(scenario, ["sheaf greedy", ...Object.keys(features)], "sheaf greedy", {});
}

function compare({ name, kind, calls, batch }, names, yardstick, wanted) {
  const figures = new Map(
    names.map((contender) => [contender, { cpuNs: [], bytes: [], cpuRatio: [], bytesRatio: [] }]),
  );
  const failures = new Map();
  for (let round = 0; round < rounds; round++) {
    // Turned by one each round, so that none always runs after the same neighbour.
    const order = names.map((_, index) => names[(index + round) % names.length]);
    const results = new Map();
    for (const contender of order) {
      if (failures.has(contender)) continue;
      const result = measure(contender, calls, batch);
      if (typeof result === "string") failures.set(contender, result);
      else results.set(contender, result);
    }
    const base = results.get(yardstick);
    for (const [contender, { cpuNs, bytes }] of results) {
      const figure = figures.get(contender);
      figure.cpuNs.push(cpuNs);
      figure.bytes.push(bytes);
      figure.cpuRatio.push(base === undefined ? Number.NaN : cpuNs / base.cpuNs);
      figure.bytesRatio.push(base === undefined ? Number.NaN : bytes / base.bytes);
    }
  }
  const rows = [["", "CPU ns a call", `× ${yardstick}`, "bytes a call", `× ${yardstick}`, "target"]];
  for (const contender of names) {
    const { cpuNs, bytes, cpuRatio, bytesRatio } = figures.get(contender);
    if (cpuNs.length === 0) continue;
    const verdict = verdictOf(wanted[contender], kind, median(cpuRatio), median(bytesRatio));
    rows.push([
      contender,
      median(cpuNs).toFixed(0),
      median(cpuRatio).toFixed(2),
      median(bytes).toFixed(0),
      median(bytesRatio).toFixed(2),
      verdict,
    ]);
  }
  console.log(`### ${name}\n\n${table(rows)}\n`);
  for (const [contender, message] of failures) {
    console.log(`${contender} did not run: ${message}\n`);
    if (!libraries.includes(contender)) process.exitCode = 1;
  }
}

function verdictOf(target, kind, cpuRatio, bytesRatio) {
  if (target === undefined) return "";
  const cpu = `CPU ≤ ${target[kind]}: ${cpuRatio <= target[kind] ? "met" : "missed"}`;
  if (kind !== "flight" || target.bytes === undefined) return cpu;
  return `${cpu}, bytes ≤ ${target.bytes}: ${bytesRatio <= target.bytes ? "met" : "missed"}`;
}

function measure(contender, calls, batch) {
  const child = spawnSync(
    process.execPath,
    ["--expose-gc", `${here}/core-child.mjs`, contender, String(calls), String(batch)],
    { encoding: "utf8", timeout: 120_000 },
  );
  if (child.status === 0) return JSON.parse(child.stdout);
  return child.stderr.split("\n").find((line) => line.includes("Error")) ?? `exit ${child.status ?? child.signal}`;
}
