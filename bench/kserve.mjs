// `npm run bench -- kserve`: mlp over KServe's binary tensors, as a share of the model's own limit in the same run.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { createBatcher } from "../packages/sheaf/dist/index.js";
import { workerThread } from "../packages/sheaf/dist/node/index.js";
import { builtinModels } from "../packages/sheaf-server/dist/runners/builtin.js";
import { machine, median, table } from "./lib/machine.mjs";

const rounds = 3;
const roundMs = 2500;
const length = 768;
const main = new URL("../packages/sheaf-server/dist/cli/main.js", import.meta.url).pathname;
const port = 18_500 + (process.pid % 1000);
const row = Float32Array.from({ length }, (_, i) => Math.sin(i));

/** Items a second of callers that each wait for their reply before they send the next. */
async function throughput(callers, itemsEach, call) {
  let items = 0;
  let isCounting = false;
  const endAtMs = performance.now() + roundMs + 500;
  const loops = Array.from({ length: callers }, async () => {
    while (performance.now() < endAtMs) {
      await call();
      if (isCounting) items += itemsEach;
    }
  });
  await new Promise((resolve) => setTimeout(resolve, 500));
  isCounting = true;
  const startAtMs = performance.now();
  await Promise.all(loops);
  return (items * 1000) / (performance.now() - startAtMs);
}

const { workerUrl, data } = builtinModels.mlp();
async function modelLimit() {
  const infer = createBatcher(workerThread(workerUrl, { data }), { maxBatchSize: 32 });
  await infer.ready();
  const perSecond = await throughput(4, 64, () => infer.many(new Array(64).fill(row)));
  await infer.close();
  return perSecond;
}

const agent = new Agent({ keepAlive: true, maxSockets: 64 });
function infer(rows) {
  const shape = `"shape":[${rows},${length}]`;
  const head = `{"parameters":{"binary_data_output":true},"inputs":[{"name":"input","datatype":"FP32",${shape},"parameters":{"binary_data_size":${rows * length * 4}}}]}`;
  const tensor = Buffer.concat(new Array(rows).fill(Buffer.from(row.buffer)));
  const body = Buffer.concat([Buffer.from(head), tensor]);
  const headers = {
    "content-type": "application/octet-stream",
    "inference-header-content-length": head.length,
    "content-length": body.length,
  };
  return () =>
    new Promise((resolve, reject) => {
      const sent = request({ port, agent, method: "POST", path: "/v2/models/mlp/infer", headers }, (reply) => {
        reply.resume();
        reply.once("end", () =>
          reply.statusCode === 200 ? resolve() : reject(new Error(`status ${reply.statusCode}`)),
        );
      });
      sent.once("error", reject);
      sent.end(body);
    });
}

const server = spawn(process.execPath, [main, "serve", "mlp"], {
  env: { ...process.env, PORT: String(port), LOG_LEVEL: "error" },
  stdio: "inherit",
});
try {
  for (let tries = 0; ; tries++) {
    const reply = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
    if (reply?.ok) break;
    if (tries > 100) throw new Error("the server is not ready after 20 s");
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  const shapes = [
    { callers: 64, rows: 1 },
    { callers: 16, rows: 8 },
    { callers: 8, rows: 32 },
  ];
  const limits = [];
  const served = shapes.map(() => []);
  for (let round = 0; round < rounds; round++) {
    limits.push(await modelLimit());
    for (const [i, { callers, rows }] of shapes.entries()) served[i].push(await throughput(callers, rows, infer(rows)));
  }
  const limit = median(limits);
  console.log(machine());
  console.log("npm run bench -- kserve");
  console.log(
    `Medians of ${rounds} alternating rounds of ${roundMs} ms; the client shares the machine with the server.\n`,
  );
  console.log(
    table([
      ["rows a request", "requests at once", "items/s", "of the model's own limit"],
      ["(the model in its worker)", "", Math.round(limit), "1.00"],
      ...shapes.map(({ callers, rows }, i) => {
        const perSecond = median(served[i]);
        return [String(rows), callers, Math.round(perSecond), (perSecond / limit).toFixed(2)];
      }),
    ]),
  );
} finally {
  agent.destroy();
  server.kill("SIGTERM");
  if (server.exitCode === null) await once(server, "exit");
}
