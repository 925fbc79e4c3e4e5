/**
 * How much of a model's own speed is left behind HTTP: `npm run bench -- worker-end-to-end`. One model thread, the
 * server and the generator share this machine's cores; the model's own limit (full batches of 32, one ahead, nothing
 * else) is measured in the same run. Also where the CPU went, by thread, and how long /livez took. About a minute.
 */
import { readdirSync, readFileSync } from "node:fs";
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { workerThread } from "sheaf/node";
import { runLoad } from "../packages/sheaf-server/dist/load/generator.js";
import { httpTarget } from "../packages/sheaf-server/dist/load/http-target.js";
import { renderRequest } from "../packages/sheaf-server/dist/load/request.js";
import { serveModel } from "../packages/sheaf-server/dist/load/served-model.js";
import { systemClock } from "../packages/sheaf-server/dist/load/system-clock.js";
import { machine, median, table } from "./lib/machine.mjs";

const rounds = 5;
const roundMs = 2000;
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
console.log(`npm run bench -- worker-end-to-end (load average before: ${loadavg()[0].toFixed(1)})`);
const rows = [["model", "limit items/s", "served items/s", "fraction", "livez p99 idle", "saturated ms"]];
const accounts = [];
for (const { name, url, data, model, item, body } of models) {
  const served = await serveModel({ entry, model });
  const idleMs = await livezP99(served.origin, sleep(roundMs));
  const infer = new URL("/infer", served.origin);
  const request = renderRequest({ url: infer, method: "POST", headers: {}, body });
  const target = httpTarget({ url: infer, requests: [request] });
  const limits = [];
  const rates = [];
  const livez = [];
  const before = cpuByThread(served.pid);
  let generatorUs = 0;
  let items = 0;
  // The limit and the served rate take turns, so that what else runs here hits both.
  for (let round = 0; round < rounds; round++) {
    limits.push(await limitOf(url, data, item));
    const own = process.cpuUsage();
    const load = runLoad({
      configuration: name,
      target,
      clock: systemClock,
      pattern: "closed",
      callers,
      seed: round + 1,
      durationMs: roundMs,
      warmUpMs: 500,
    });
    livez.push(await livezP99(served.origin, load));
    const { achievedPerS } = await load;
    rates.push(achievedPerS);
    const { user, system } = process.cpuUsage(own);
    generatorUs += user + system;
    items += (achievedPerS * (roundMs + 500)) / 1000;
  }
  accounts.push({ name, after: cpuByThread(served.pid), before, generatorUs, items });
  target.close();
  await served.stop();
  const fractions = rates.map((rate, i) => rate / limits[i]);
  const figures = [median(limits).toFixed(0), median(rates).toFixed(0), median(fractions).toFixed(2)];
  rows.push([name, ...figures, idleMs.toFixed(1), median(livez).toFixed(1)]);
}
console.log(table(rows));
console.log(
  "\nCPU by thread of the server, µs an item (its model thread is the busiest beside HTTP; the others are V8's and ONNX's):",
);
for (const { name, after, before, generatorUs, items } of accounts) {
  const spent = Array.from(after)
    .map(([thread, ms]) => [thread, ((ms - (before.get(thread) ?? 0)) * 1000) / items])
    .filter(([, us]) => us >= 0.5)
    .toSorted((a, b) => b[1] - a[1])
    .map(([thread, us]) => `${thread} ${us.toFixed(1)}`);
  console.log(`  ${name}: ${spent.join(", ")}; generator ${(generatorUs / items).toFixed(1)}`);
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
