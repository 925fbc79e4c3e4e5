/**
 * `npm run prove -- simulations [--count 100000] [--seed N]`: random simulations of the whole core, checked from
 * outside; see packages/sheaf/test/properties. A failure prints its smallest scenario and how to replay it:
 * `npm run prove -- simulations --seed N --count M --path P`.
 */
import { spawn, spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { machine } from "../../bench/lib/machine.mjs";
import { root } from "../lib/files.mjs";

const perSeed = 1_000;
const { values } = parseArgs({
  options: {
    count: { type: "string", default: "100000" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 1e9)) },
    path: { type: "string" },
  },
});
const count = integer("count", 1, 10_000_000);
const firstSeed = integer("seed", 0, 2 ** 31 - 1);

const build = spawnSync(process.execPath, ["scripts/build.mjs", "--tests"], { cwd: root, stdio: "inherit" });
if (build.status !== 0) process.exit(1);
console.log(`${machine()}\nnpm run prove -- simulations --count ${count} --seed ${firstSeed}`);

const startedAtMs = Date.now();
const seeds = Array.from({ length: Math.ceil(count / perSeed) }, (_, index) => firstSeed + index);
let played = 0;
let cpuMs = 0;
let failures = 0;
/** By pair of features and second event. */
const visits = new Map();
await Promise.all(Array.from({ length: values.path === undefined ? Math.min(2, availableParallelism()) : 1 }, turns));
const seconds = ((Date.now() - startedAtMs) / 1_000).toFixed(0);
console.log(
  `${played} simulations in ${seconds} s (${(cpuMs / played).toFixed(2)} ms of CPU each), ${failures} failed`,
);
const counts = [...visits].sort(([, a], [, b]) => a - b);
if (counts.length > 0) {
  const [rarest, least] = counts[0];
  console.log(
    `${counts.length} pairs of features with a second event; median ${counts[counts.length >> 1][1]} visits, fewest ${least}: ${rarest}`,
  );
}
const isVisited = counts.every(([, times]) => times > 0) || count < perSeed;
process.exitCode = failures === 0 && isVisited && (played === count || values.path !== undefined) ? 0 : 1;

/** Takes one seed after the other until none is left or one failed. */
async function turns() {
  for (let seed = seeds.shift(); seed !== undefined && failures === 0; seed = seeds.shift()) {
    const size = Math.min(perSeed, count - (seed - firstSeed) * perSeed);
    const { output, status } = await child(["scripts/prove/lib/simulate.mjs", seed, size, values.path ?? ""]);
    if (status !== 0) {
      failures += 1;
      console.error(`✖ seed ${seed}\n${output}`);
      return;
    }
    const result = JSON.parse(output.trim().split("\n").pop());
    played += result.played;
    cpuMs += result.cpuMs;
    for (const [triple, times] of result.visits) visits.set(triple, (visits.get(triple) ?? 0) + times);
    if ((played / perSeed) % 10 === 0) console.error(`${played} played`);
  }
}

function child(parameters) {
  return new Promise((resolve) => {
    const running = spawn(process.execPath, parameters.map(String), { cwd: root, timeout: 600_000 });
    let output = "";
    for (const stream of [running.stdout, running.stderr]) stream.on("data", (text) => (output += text));
    running.on("close", (status) => resolve({ output, status }));
  });
}

function integer(name, least, most) {
  const number = Number(values[name]);
  if (Number.isInteger(number) && number >= least && number <= most) return number;
  console.error(`--${name} must be an integer from ${least} to ${most}, got ${JSON.stringify(values[name])}`);
  return process.exit(2);
}
