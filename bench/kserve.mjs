/**
 * `npm run bench -- kserve [--rounds 5] [--node-flag=--single-threaded-gc …]`: mlp over KServe's binary tensors, as a share
 * of the model's own limit (full batches of 32, one ahead, nothing else) in the same run. One model thread, the server and
 * the generator share this machine's cores. Also where the CPU went, by thread. About a minute.
 */
import { loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { runLoad } from "../packages/sheaf-server/dist/load/generator.js";
import { httpTarget } from "../packages/sheaf-server/dist/load/http/http-target.js";
import { renderRequest } from "../packages/sheaf-server/dist/load/http/request.js";
import { serveModel } from "../packages/sheaf-server/dist/load/http/server-process.js";
import { systemClock } from "../packages/sheaf-server/dist/load/system-clock.js";
import { builtinModels } from "../packages/sheaf-server/dist/runners/builtin.js";
import { binaryTensorRequest } from "./lib/kserve-request.mjs";
import { machine, median, table } from "./lib/machine.mjs";
import { modelLimit } from "./lib/model-limit.mjs";
import { addCpu, cpuByThread, cpuPerItem } from "./lib/thread-cpu.mjs";

const { values: flags } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    "node-flag": { type: "string", multiple: true, default: [] },
  },
});
const nodeFlags = flags["node-flag"];
const rounds = Number(flags.rounds);
const roundMs = 2000;
const warmUpMs = 500;
const length = 768;
const entry = fileURLToPath(new URL("../packages/sheaf-server/dist/cli/main.js", import.meta.url));
const item = Float32Array.from({ length }, (_, i) => Math.sin(i));
const shapes = [
  { rows: 1, callers: 128 },
  { rows: 8, callers: 32 },
  { rows: 32, callers: 8 },
];

const { workerUrl, data } = builtinModels.mlp();
const served = await serveModel({ entry, model: "mlp", flags: ["--worker-threads", "1"], nodeFlags });
const url = new URL("/v2/models/mlp/infer", served.origin);
const limits = [];
const results = shapes.map(() => ({ rates: [], cpu: new Map(), generatorUs: 0, items: 0 }));
try {
  // All take turns, so that what else runs here hits each.
  for (let round = 0; round < rounds; round++) {
    limits.push(await modelLimit(workerUrl, { data, item, durationMs: roundMs }));
    for (const [i, shape] of shapes.entries()) {
      const result = results[i];
      const before = cpuByThread(served.pid);
      const own = process.cpuUsage();
      const perS = await itemsPerS(shape, round);
      const { user, system } = process.cpuUsage(own);
      addCpu(result.cpu, served.pid, before);
      result.generatorUs += user + system;
      result.items += (perS * (roundMs + warmUpMs)) / 1000;
      result.rates.push(perS);
    }
  }
} finally {
  await served.stop();
}

console.log(machine());
console.log(
  `npm run bench -- kserve${["", ...nodeFlags].join(" --node-flag=")} --rounds ${rounds} (load average: ${loadavg()[0].toFixed(1)}); medians of the rounds\n`,
);
const share = ({ rates }) => median(rates.map((rate, round) => rate / limits[round])).toFixed(2);
console.log(
  table([
    ["rows a request", "requests at once", "items/s", "of the model's own limit"],
    ["(the model in its worker)", "", median(limits).toFixed(0), "1.00"],
    ...shapes.map(({ rows, callers }, i) => [rows, callers, median(results[i].rates).toFixed(0), share(results[i])]),
  ]),
);
console.log("\nCPU by thread of the server, µs an item:");
for (const [i, { rows }] of shapes.entries()) {
  const { cpu, generatorUs, items } = results[i];
  console.log(`  ${rows} rows: ${cpuPerItem(cpu, items)}; generator ${(generatorUs / items).toFixed(1)}`);
}

/** Items a second of callers that each wait for their reply before they send the next. */
async function itemsPerS({ rows, callers }, round) {
  const target = httpTarget({ url, requests: [binaryRequest(rows)] });
  const { achievedPerS, statuses } = await runLoad({
    configuration: `${rows} rows`,
    target,
    clock: systemClock,
    pattern: "closed",
    callers,
    seed: round + 1,
    durationMs: roundMs,
    warmUpMs,
  });
  target.close();
  const failed = Object.entries(statuses).find(([status]) => status !== "200");
  if (failed !== undefined) throw new Error(`${failed[1]} requests ended with ${failed[0]}`);
  return achievedPerS * rows;
}

/** One whole HTTP request with a binary tensor of so many rows. */
function binaryRequest(rows) {
  const values = Float32Array.from({ length: rows * length }, (_, i) => item[i % length]);
  const { body, headers } = binaryTensorRequest(values, rows);
  const sized = { ...headers, "content-length": String(body.length) };
  return Buffer.concat([renderRequest({ url, method: "POST", headers: sized }), body]);
}
