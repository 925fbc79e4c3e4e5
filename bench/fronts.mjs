/**
 * What fronts cost and gain: `npm run bench -- fronts`. CPU microseconds a request by process and thread, the mean batch and the
 * rate, of `sheaf serve` with one process, and with one, two … fronts and a hub, for a model of one Relu of 768 floats in a closed
 * loop of 64; the mean batch of a model that takes 5 ms at equal load; what the hub costs a call of a front that sends 16 or 64 a
 * turn; and a lone request. A front is a process beside the hub, so HTTP_PROCESSES=1 has none. Linux only; about four minutes.
 */
import { spawn } from "node:child_process";
import { readdirSync, readFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { HubLink } from "../packages/sheaf-server/dist/server/fronts/hub-link.js";
import { runLoad } from "../packages/sheaf-server/dist/load/generator.js";
import { httpTarget } from "../packages/sheaf-server/dist/load/http/http-target.js";
import { renderRequest } from "../packages/sheaf-server/dist/load/http/request.js";
import { systemClock } from "../packages/sheaf-server/dist/load/system-clock.js";
import { OnnxGraph } from "../test/support/onnx-writer.mjs";
import { binaryTensorRequest } from "./lib/kserve-request.mjs";
import { machine, median, table } from "./lib/machine.mjs";
import { stealSeconds } from "./lib/process-cpu.mjs";

const main = new URL("../packages/sheaf-server/dist/cli/main.js", import.meta.url).pathname;
const fronts = (process.argv[3] ?? "1,2").split(",").map(Number);
const rounds = 3;
const spanMs = 3000;
const callers = 64;

const folder = mkdtempSync(join(tmpdir(), "sheaf-fronts-"));
const model = join(folder, "relu.onnx");
writeFileSync(model, reluOf(768));
const pause = join(folder, "pause.mjs");
writeFileSync(
  pause,
  `import { defineWorker } from "${import.meta.resolve("sheaf/node")}";
  const run = (items) => new Promise((resolve) => setTimeout(resolve, 5, items.map(() => 0)));
  export default defineWorker({ run });`,
);
const floats = Float32Array.from({ length: 768 }, (_, i) => Math.cos(i + 1));
const binary = { ...binaryTensorRequest(floats) };
const formats = {
  JSON: { path: "/infer", body: Buffer.from(JSON.stringify(Array.from(floats))), headers: {} },
  binary: { path: "/v2/models/relu/infer", ...binary },
};
const paused = { path: "/infer/pause", body: Buffer.from("1"), headers: {} };

console.log(machine());
console.log("npm run bench -- fronts");
const servers = [];
for (const count of fronts) servers.push(await start(count));
const measured = new Map();
const stealBefore = stealSeconds();
for (let round = 0; round <= rounds; round++)
  for (const [format, shape] of Object.entries(formats))
    for (const server of round % 2 === 0 ? servers : servers.toReversed()) {
      const figures = await measure(server, shape);
      if (round > 0)
        measured.set(`${format} ${server.count}`, [...(measured.get(`${format} ${server.count}`) ?? []), figures]);
    }
const columns = ["main", "front", "hub", "worker", "supervisor", "perSecond", "batch", "p50"];
console.log(
  `CPU µs a request of the processes' main threads, all fronts together (median of ${rounds}); stolen: ${(stealSeconds() - stealBefore).toFixed(1)} s`,
);
console.log(
  table([
    ["", "one process", "fronts", "hub", "other threads", "first process", "sum", "requests/s", "mean batch", "p50 ms"],
    ...[...measured].map(([name, rows]) => {
      const of = Object.fromEntries(columns.map((column) => [column, median(rows.map((row) => row[column]))]));
      const cpu = [of.main, of.front, of.hub, of.worker, of.supervisor];
      const sum = cpu.reduce((total, one) => total + one, 0);
      return [
        name,
        ...[...cpu, sum].map((us) => us.toFixed(1)),
        of.perSecond.toFixed(0),
        of.batch.toFixed(1),
        of.p50.toFixed(2),
      ];
    }),
  ]),
);
const batches = servers.map(() => []);
for (let round = 0; round < rounds; round++)
  for (const [i, server] of servers.entries())
    batches[i].push((await measure(server, paused, { pattern: "steady", ratePerS: 1000, seed: round })).batch);
for (const [i, { count }] of servers.entries())
  console.log(`A model of 5 ms at 1,000/s with HTTP_PROCESSES=${count}: mean batch ${median(batches[i]).toFixed(2)}`);
for (const server of servers) if (server.count > 1) await hubCosts(server);
const lone = servers.map(() => []);
for (let round = 0; round < 5; round++) for (const [i, server] of servers.entries()) lone[i].push(await loneMs(server));
for (const [i, { count }] of servers.entries())
  console.log(`A lone request with HTTP_PROCESSES=${count}: p50 ${median(lone[i]).toFixed(2)} ms`);
for (const { count, child } of servers)
  if (count > 1)
    for (const { role, pid } of processesOf(child.pid)) console.log(`${count}: ${role}, private ${privateMib(pid)} MiB, resident ${residentMib(pid)} MiB`); // prettier-ignore
for (const { child } of servers) child.kill();
rmSync(folder, { recursive: true });

async function start(count) {
  const sockets = mkdtempSync(join(folder, "sockets-"));
  const env = { ...process.env, HTTP_PROCESSES: String(count), PORT: "0", TMPDIR: sockets };
  const child = spawn(process.execPath, [main, "serve", model, pause, "--queue-max-size", "10000"], { env, stdio: ["ignore", "pipe", "inherit"] }); // prettier-ignore
  let text = "";
  for await (const piece of child.stdout.iterator({ destroyOnReturn: false }))
    if ((text += piece).includes('"msg":"ready"')) break;
  child.stdout.resume();
  await sleep(3000);
  return { count, child, sockets, url: /listening on (http:[^"]+)/.exec(text)[1] };
}

async function measure(
  { child, url: origin },
  { path, body, headers },
  load = { pattern: "closed", callers, seed: 1 },
) {
  const url = new URL(path, origin);
  const head = { "content-type": "application/json", ...headers, "content-length": String(body.length) };
  const target = httpTarget({
    url,
    requests: [Buffer.concat([renderRequest({ url, method: "POST", headers: head }), body])],
  });
  const options = { configuration: path, target, clock: systemClock, ...load };
  const before = cpuOf(child.pid);
  const metrics = await batchesOf(origin);
  const { requests, ok, lastErrorBody, latencyMs } = await runLoad({ ...options, durationMs: spanMs });
  const after = cpuOf(child.pid);
  const { items, batches } = await batchesOf(origin);
  target.close();
  if (ok < requests) throw new Error(`${requests - ok} of ${requests} requests failed: ${lastErrorBody}`);
  const us = Object.fromEntries(
    Object.entries(after).map(([role, ms]) => [role, ((ms - before[role]) * 1000) / requests]),
  );
  return {
    ...us,
    perSecond: (1000 * requests) / spanMs,
    batch: (items - metrics.items) / (batches - metrics.batches),
    p50: latencyMs.p50,
  };
}

/** CPU of the hub's main thread for calls of one front, which sends the next ones of a turn when all have been answered. */
async function hubCosts({ count, child, sockets }) {
  let up;
  let models = [];
  const isUp = new Promise((resolve) => (up = resolve));
  const link = new HubLink({
    path: join(sockets, readdirSync(sockets)[0], "hub"),
    front: 99,
    figures: () => ({ requests: [], process: [] }),
    onModels: async (announced) => void (models = announced),
    onUp: up,
    onDown: () => undefined,
  });
  await isUp;
  const batcher = link.batcherOf(
    models.find(({ name }) => name === "relu"),
    callers,
  );
  const signals = Array.from({ length: callers }, () => new AbortController().signal);
  for (const size of [16, 64]) {
    const turns = async (calls) => {
      for (let sent = 0; sent < calls; sent += size)
        await Promise.all(signals.slice(0, size).map((signal) => batcher.detailed(floats, { tag: { signal } })));
    };
    const us = [];
    for (let round = 0; round <= rounds; round++) {
      const before = cpuOf(child.pid).hub;
      await turns(16_000);
      if (round > 0) us.push((1000 * (cpuOf(child.pid).hub - before)) / 16_000);
    }
    console.log(`HTTP_PROCESSES=${count}, ${size} calls a turn: hub ${median(us).toFixed(1)} µs a call`);
  }
  link.close();
}

async function loneMs({ url: origin }) {
  const times = [];
  for (let i = 0; i < 200; i++) {
    const startedAtMs = performance.now();
    await (await fetch(`${origin}/infer`, { method: "POST", headers: { "content-type": "application/json" }, body: formats.JSON.body })).arrayBuffer(); // prettier-ignore
    times.push(performance.now() - startedAtMs);
    await sleep(2);
  }
  return median(times);
}

async function batchesOf(origin) {
  const text = await (await fetch(`${origin}/metrics`)).text();
  const sum = (name) =>
    [...text.matchAll(new RegExp(`^${name}\\{[^}]*\\} (\\S+)`, "gm"))].reduce(
      (total, [, value]) => total + Number(value),
      0,
    );
  return { items: sum("sheaf_batch_size_items_sum"), batches: sum("sheaf_batch_size_items_count") };
}

function processesOf(pid) {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  const roleOf = (child) => /(hub|front)-main/.exec(readFileSync(`/proc/${child}/cmdline`, "utf8"))?.[1];
  return children.map((child) => ({ role: roleOf(child), pid: child }));
}

/** CPU time in ms so far of the main threads of each kind of process, and of all other threads. */
function cpuOf(pid) {
  const sum = { main: 0, front: 0, hub: 0, worker: 0, supervisor: 0 };
  const children = processesOf(pid);
  for (const { role, pid: id } of [{ role: children.length > 0 ? "supervisor" : "main", pid }, ...children])
    for (const thread of readdirSync(`/proc/${id}/task`)) {
      const ns = Number(readFileSync(`/proc/${id}/task/${thread}/schedstat`, "utf8").split(" ")[0]);
      sum[Number(thread) === id ? role : "worker"] += ns / 1e6;
    }
  return sum;
}

/** A model of one Relu, `[batch, length]`. */
function reluOf(length) {
  const graph = new OnnxGraph();
  const axes = ["batch", length];
  const y = graph.rename(graph.node("Relu", ["input"]), "y");
  return graph.model({ inputs: [{ name: "input", type: "float", axes }], outputs: [{ name: y, type: "float", axes }] });
}

function privateMib(pid) {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const kib = [...rollup.matchAll(/^Private_\w+: +(\d+)/gm)].reduce((sum, [, one]) => sum + Number(one), 0);
  return Math.round(kib / 1024);
}

function residentMib(pid) {
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024);
}
