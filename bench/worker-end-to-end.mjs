/**
 * How much of a model's own speed is left behind HTTP: `npm run bench -- worker-end-to-end [--rounds 5]`. One model thread,
 * the server and the generator share this machine's cores; the model's own limit (full batches of 32, one ahead, nothing
 * else) is measured in the same run. Also where the CPU went, by thread, and the p99 of /livez: idle, saturated, and
 * saturated with workers whose priority is not lowered (WORKER_NICENESS=0). About a minute and a half.
 */
import { readdirSync, readFileSync } from "node:fs";
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { workerThread } from "sheaf/node";
import { runLoad } from "../packages/sheaf-server/dist/load/generator.js";
import { httpTarget } from "../packages/sheaf-server/dist/load/http-target.js";
import { renderRequest } from "../packages/sheaf-server/dist/load/request.js";
import { serveModel } from "../packages/sheaf-server/dist/load/served-model.js";
import { systemClock } from "../packages/sheaf-server/dist/load/system-clock.js";
import { machine, median, table } from "./lib/machine.mjs";

const { values: flags } = parseArgs({ options: { rounds: { type: "string", default: "5" } } });
const rounds = Number(flags.rounds);
const roundMs = 2000;
const warmUpMs = 500;
const callers = 256;
const batch = 32;
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
  `npm run bench -- worker-end-to-end --rounds ${rounds} (load average before: ${loadavg()[0].toFixed(1)}); medians of the rounds`,
);
const rows = [["model", "limit items/s", "served items/s", "fraction"]];
const livezRows = [["/livez p99 ms", "idle", "saturated", "saturated, priority not lowered", "items/s then"]];
const accounts = [];
for (const model of models) {
  const { name, url, data, item } = model;
  const served = await serveModel({ entry, model: model.model });
  const equal = await serveModel({ entry, model: model.model, flags: ["--worker-niceness", "0"] });
  const [limits, rates, ratesOfEqual, idle, saturated, saturatedEqual] = [[], [], [], [], [], []];
  const account = { name, cpu: new Map(), generatorUs: 0, items: 0 };
  // All take turns, so that what else runs here hits each.
  for (let round = 0; round < rounds; round++) {
    limits.push(await limitOf(url, data, item));
    idle.push(await livezP99(served.origin, sleep(roundMs)));
    const before = cpuByThread(served.pid);
    const own = process.cpuUsage();
    const { perS, p99Ms } = await saturate(served.origin, model, round);
    const { user, system } = process.cpuUsage(own);
    account.generatorUs += user + system;
    account.items += (perS * (roundMs + warmUpMs)) / 1000;
    for (const [thread, ms] of cpuByThread(served.pid))
      account.cpu.set(thread, (account.cpu.get(thread) ?? 0) + ms - (before.get(thread) ?? 0));
    rates.push(perS);
    saturated.push(p99Ms);
    const withoutLowering = await saturate(equal.origin, model, round);
    ratesOfEqual.push(withoutLowering.perS);
    saturatedEqual.push(withoutLowering.p99Ms);
  }
  accounts.push(account);
  await served.stop();
  await equal.stop();
  const fractions = rates.map((rate, i) => rate / limits[i]);
  rows.push([name, median(limits).toFixed(0), median(rates).toFixed(0), median(fractions).toFixed(2)]);
  const p99s = [idle, saturated, saturatedEqual].map((ms) => median(ms).toFixed(1));
  livezRows.push([name, ...p99s, `${median(rates).toFixed(0)} / ${median(ratesOfEqual).toFixed(0)}`]);
}
console.log(table(rows));
console.log(`\n${table(livezRows)}`);
console.log(
  "\nCPU by thread of the server, µs an item (its model thread is the busiest beside HTTP; the others are V8's and ONNX's):",
);
for (const { name, cpu, generatorUs, items } of accounts) {
  const spent = Array.from(cpu, ([thread, ms]) => [thread, (ms * 1000) / items])
    .filter(([, us]) => us >= 0.5)
    .toSorted((a, b) => b[1] - a[1])
    .map(([thread, us]) => `${thread} ${us.toFixed(1)}`);
  console.log(`  ${name}: ${spent.join(", ")}; generator ${(generatorUs / items).toFixed(1)}`);
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

/** Items a second of the bare executor with full batches, one running and one ahead. */
async function limitOf(url, data, item) {
  const executor = workerThread(url, { data, niceness: 0 });
  await executor.ready();
  const items = Array.from({ length: batch }, () => item);
  const { signal } = new AbortController();
  const run = () => executor.run(items, { signal, batchId: 1, size: batch, attempt: 1 });
  for (let i = 0; i < 20; i++) await run();
  let batches = 0;
  const startedAtMs = performance.now();
  const feed = async () => {
    while (performance.now() - startedAtMs < roundMs) {
      await run();
      batches++;
    }
  };
  await Promise.all([feed(), feed()]);
  const perS = (batches * batch * 1000) / (performance.now() - startedAtMs);
  await executor.close();
  return perS;
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

/** CPU milliseconds of each thread so far; Linux only. The thread with the process's id is the HTTP thread. */
function cpuByThread(pid) {
  const used = new Map();
  const ticksPerS = 100;
  for (const tid of readdirSync(`/proc/${pid}/task`)) {
    const stat = readFileSync(`/proc/${pid}/task/${tid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const ms = ((Number(fields[11]) + Number(fields[12])) * 1000) / ticksPerS;
    used.set(Number(tid) === pid ? "HTTP thread" : `thread ${tid}`, ms);
  }
  return used;
}
