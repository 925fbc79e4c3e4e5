/**
 * `npm run bench -- dataloader [--rounds 5] [--cpu-ms 400]`: CPU of a load with `sheaf/adapters/dataloader` beside the
 * npm package `dataloader`, with the cache on and off. Each runs in a process of its own, in turns; a ratio is of one
 * round, and the median of the rounds is shown. About 40 s.
 */
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { machine, median, table } from "./lib/machine.mjs";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    "cpu-ms": { type: "string", default: "400" },
    child: { type: "string" },
    scenario: { type: "string" },
  },
});
const rounds = Number(values.rounds);
const cpuMs = Number(values["cpu-ms"]);
if (!(Number.isInteger(rounds) && rounds >= 1 && rounds <= 100 && cpuMs >= 10 && cpuMs <= 10_000)) {
  console.error("--rounds must be an integer from 1 to 100, --cpu-ms a number from 10 to 10000");
  process.exit(2);
}

const loads = 1000;
/** Of each: the options, the key of the i-th load, whether every wave starts with a new loader. */
const scenarios = {
  "cache off": { options: { cache: false, maxBatchSize: 32 }, keyOf: (i) => i },
  "cache on, every key new": { options: { maxBatchSize: 32 }, keyOf: (i) => i },
  "cache on, every key ten times": { options: { maxBatchSize: 32 }, keyOf: (i) => i % (loads / 10) },
  "a new loader for every 20 loads": { options: {}, keyOf: (i) => i % 10, loads: 20, perRequest: true },
};

if (values.child === undefined) compare();
else console.log(JSON.stringify(await measure(values.child, scenarios[values.scenario])));

function compare() {
  console.log(`${machine()}\nnpm run bench -- dataloader --rounds ${rounds} --cpu-ms ${cpuMs}\n`);
  const rows = [["", "dataloader, CPU ns a load", "sheaf, CPU ns a load", "ratio"]];
  for (const name of Object.keys(scenarios)) {
    const figures = { dataloader: [], sheaf: [], ratio: [] };
    for (let round = 0; round < rounds; round++) {
      const order = round % 2 === 0 ? ["dataloader", "sheaf"] : ["sheaf", "dataloader"];
      const ns = Object.fromEntries(order.map((library) => [library, childNs(library, name)]));
      for (const library of order) figures[library].push(ns[library]);
      figures.ratio.push(ns.sheaf / ns.dataloader);
    }
    rows.push([
      name,
      median(figures.dataloader).toFixed(0),
      median(figures.sheaf).toFixed(0),
      median(figures.ratio).toFixed(2),
    ]);
  }
  console.log(table(rows));
}

function childNs(library, scenario) {
  const parameters = [fileURLToPath(import.meta.url), "--child", library, "--scenario", scenario];
  const { stdout, stderr, status } = spawnSync(process.execPath, [...parameters, "--cpu-ms", String(cpuMs)], {
    encoding: "utf8",
    timeout: 120_000,
  });
  if (status !== 0) throw new Error(`${library}, ${scenario}: ${stderr}`);
  return JSON.parse(stdout);
}

/** CPU nanoseconds a load, the garbage collector's included. */
async function measure(library, { options, keyOf, loads: count = loads, perRequest = false }) {
  const require = createRequire(new URL("../packages/sheaf/package.json", import.meta.url));
  const Loader = library === "sheaf" ? (await import("sheaf/adapters/dataloader")).DataLoader : require("dataloader");
  const create = () => new Loader(async (keys) => keys, options);
  let loader = create();
  const wave = async () => {
    if (perRequest) loader = create();
    else loader.clearAll();
    const values = await Promise.all(Array.from({ length: count }, (_, i) => loader.load(keyOf(i))));
    if (values[count - 1] !== keyOf(count - 1)) throw new Error(`${library} brought back ${values[count - 1]}`);
  };
  const wavesFor = async (ms) => {
    const start = process.cpuUsage();
    for (let waves = 1; ; waves++) {
      await wave();
      const { user, system } = process.cpuUsage(start);
      if (user + system > ms * 1000) return ((user + system) * 1000) / (waves * count);
    }
  };
  await wavesFor(cpuMs * 2); // until the compiler is done
  const samples = [];
  for (let sample = 0; sample < 3; sample++) samples.push(await wavesFor(cpuMs / 3));
  return median(samples);
}
