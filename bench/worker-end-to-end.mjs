/**
 * How much of a model's own speed is left behind HTTP: `npm run bench -- worker-end-to-end [--rounds 5]`. One model thread,
 * the server and the generator share this machine's cores; the model's own limit (full batches of 32, one ahead, nothing
 * else) is measured in the same run. Also where the CPU went, by thread, and the p99 of /livez: idle, saturated, and
 * saturated with workers whose priority is lowered (WORKER_NICENESS=10). About a minute and a half.
 */
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { runLoad } from "../packages/sheaf-server/dist/load/generator.js";
import { httpTarget } from "../packages/sheaf-server/dist/load/http/http-target.js";
import { renderRequest } from "../packages/sheaf-server/dist/load/http/request.js";
import { serveModel } from "../packages/sheaf-server/dist/load/http/server-process.js";
import { systemClock } from "../packages/sheaf-server/dist/load/system-clock.js";
import { machine, median, table } from "./lib/machine.mjs";
import { modelLimit } from "./lib/model-limit.mjs";
import { addCpu, cpuByThread, cpuPerItem } from "./lib/thread-cpu.mjs";

const { values: flags } = parseArgs({
  options: { rounds: { type: "string", default: "5" }, callers: { type: "string", default: "128" } },
});
const rounds = Number(flags.rounds);
const roundMs = 2000;
const warmUpMs = 500;
/** Four full batches: one runs, one is ahead, two wait or travel. Each more waits before the HTTP thread. */
const callers = Number(flags.callers);
const oneThread = ["--worker-threads", "1"];
const entry = fileURLToPath(new URL("../packages/sheaf-server/dist/cli/main.js", import.meta.url));
const mlpUrl = new URL("../packages/sheaf-server/dist/runners/mlp-worker.js", import.meta.url);
const busyUrl = new URL("./worker-busy-worker.mjs", import.meta.url);
const vector = Float32Array.from({ length: 768 }, (_, i) => Math.sin(i));
const models = [
  { name: "0.8 + 0.075 n ms, tiny", url: busyUrl, model: fileURLToPath(busyUrl), item: 1, body: "1" },
  { name: "mlp, JSON", url: mlpUrl, data: {}, model: "mlp", item: vector, body: JSON.stringify(Array.from(vector)) },
];

console.log(machine());
console.log(
  `npm run bench -- worker-end-to-end --rounds ${rounds} --callers ${callers} (load average before: ${loadavg()[0].toFixed(1)}); medians of the rounds`,
);
const rows = [["model", "limit items/s", "served items/s", "fraction"]];
const livezRows = [["/livez p99 ms", "idle", "saturated", "saturated, priority lowered", "items/s then"]];
const accounts = [];
for (const model of models) {
  const { name, url, data, item } = model;
  const served = await serveModel({ entry, model: model.model, flags: oneThread });
  const lowered = await serveModel({ entry, model: model.model, flags: [...oneThread, "--worker-niceness", "10"] });
  const [limits, rates, ratesOfLowered, idle, saturated, saturatedLowered] = [[], [], [], [], [], []];
  const account = { name, cpu: new Map(), generatorUs: 0, items: 0 };
  // All take turns, so that what else runs here hits each.
  for (let round = 0; round < rounds; round++) {
    limits.push(await modelLimit(url, { data, item, durationMs: roundMs }));
    idle.push(await livezP99(served.origin, sleep(roundMs)));
    const before = cpuByThread(served.pid);
    const own = process.cpuUsage();
    const { perS, p99Ms } = await saturate(served.origin, model, round);
    const { user, system } = process.cpuUsage(own);
    account.generatorUs += user + system;
    account.items += (perS * (roundMs + warmUpMs)) / 1000;
    addCpu(account.cpu, served.pid, before);
    rates.push(perS);
    saturated.push(p99Ms);
    const whileLowered = await saturate(lowered.origin, model, round);
    ratesOfLowered.push(whileLowered.perS);
    saturatedLowered.push(whileLowered.p99Ms);
  }
  accounts.push(account);
  await served.stop();
  await lowered.stop();
  const fractions = rates.map((rate, i) => rate / limits[i]);
  rows.push([name, median(limits).toFixed(0), median(rates).toFixed(0), median(fractions).toFixed(2)]);
  const p99s = [idle, saturated, saturatedLowered].map((ms) => median(ms).toFixed(1));
  livezRows.push([name, ...p99s, `${median(rates).toFixed(0)} / ${median(ratesOfLowered).toFixed(0)}`]);
}
console.log(table(rows));
console.log(`\n${table(livezRows)}`);
console.log(
  "\nCPU by thread of the server, µs an item (its model thread is the busiest beside HTTP; the others are V8's and ONNX's):",
);
for (const { name, cpu, generatorUs, items } of accounts) {
  console.log(`  ${name}: ${cpuPerItem(cpu, items)}; generator ${(generatorUs / items).toFixed(1)}`);
}

/** Replies a second to callers that keep the model busy, and the p99 of /livez meanwhile. */
async function saturate(origin, { name, body }, round) {
  const infer = new URL("/infer", origin);
  const target = httpTarget({
    url: infer,
    requests: [renderRequest({ url: infer, method: "POST", headers: {}, body })],
  });
  const load = runLoad({
    configuration: name,
    target,
    clock: systemClock,
    pattern: "closed",
    callers,
    seed: round + 1,
    durationMs: roundMs,
    warmUpMs,
  });
  const p99Ms = await livezP99(origin, load);
  const { achievedPerS } = await load;
  target.close();
  return { perS: achievedPerS, p99Ms };
}

async function livezP99(origin, until) {
  let over = false;
  void until.then(() => (over = true));
  const tookMs = [];
  while (!over) {
    const startedAtMs = performance.now();
    await (await fetch(`${origin}/livez`)).arrayBuffer();
    tookMs.push(performance.now() - startedAtMs);
    await sleep(10);
  }
  return tookMs.toSorted((a, b) => a - b)[Math.floor((tookMs.length - 1) * 0.99)];
}
