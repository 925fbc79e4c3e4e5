/**
 * `npm run bench -- clustering [--rate 400] [--ms 4000] [--rounds 3]`: the same Poisson load on one `sheaf serve` process
 * and dealt in turn to 2 and 4 independent ones, as `cluster` or a load balancer before copies would, and on one process
 * with 4 workers: the batch that a request rides in, the model time that it costs, and its latency. The model waits 10 ms
 * a batch and 0.3 ms an item.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { seededRandom } from "sheaf/internal/tuning";
import { machine, median, table } from "./lib/machine.mjs";

const { values } = parseArgs({
  options: {
    rate: { type: "string", default: "400" },
    ms: { type: "string", default: "4000" },
    rounds: { type: "string", default: "3" },
  },
});
const [ratePerS, durationMs, rounds] = [values.rate, values.ms, values.rounds].map(Number);
const isGood = ratePerS > 0 && ratePerS <= 1000 && durationMs >= 500 && durationMs <= 30_000;
if (!(isGood && Number.isInteger(rounds) && rounds >= 1 && rounds <= 20)) {
  console.error("--rate must be above 0, at most 1000; --ms 500 to 30000; --rounds an integer, 1 to 20");
  process.exit(2);
}
const fixedMs = 10;
const perItemMs = 0.3;

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const single = await Promise.all(Array.from({ length: 4 }, () => startServer(1)));
const wide = await startServer(4);
const configurations = {
  "1 process": single.slice(0, 1),
  "2 processes": single.slice(0, 2),
  "4 processes": single,
  "1 process, 4 workers": [wide],
};
const names = Object.keys(configurations);
const agent = new Agent({ keepAlive: true, maxSockets: 1024 });
try {
  console.log(`${machine()}\nnpm run bench -- clustering --rate ${ratePerS} --ms ${durationMs} --rounds ${rounds}\n`);
  const results = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = 0; round < rounds; round++)
    for (let i = 0; i < names.length; i++) {
      const name = names[(i + round) % names.length];
      await load(configurations[name], 500, 99); // the policy learns the load of its process
      results[name].push(await load(configurations[name], durationMs, round + 1));
    }
  const rows = [["", "items in a request's batch", "model time a request", "p50", "p99"]];
  for (const [name, runs] of Object.entries(results)) {
    const of = (key) => median(runs.map((run) => run[key])).toFixed(1);
    rows.push([name, of("batchSize"), ...["modelMs", "p50", "p99"].map((key) => `${of(key)} ms`)]);
  }
  console.log(`${table(rows)}\n\nMedian of ${rounds} rounds.`);
} finally {
  agent.destroy();
  for (const { child } of [...single, wide]) child.kill("SIGTERM");
  await Promise.all([...single, wide].map(({ ended }) => ended));
}

async function startServer(workers) {
  const words = [
    path("../packages/sheaf-server/bin/sheaf.js"),
    "serve",
    path("tune-workers/fixed-and-per-item-worker.mjs"),
  ];
  const child = spawn(process.execPath, [...words, "--workers", String(workers), "--port", "0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  let url;
  for await (const line of createInterface({ input: child.stdout })) {
    url ??= /listening on (http:\/\/[^"]+)/.exec(line)?.[1];
    if (line.includes('"msg":"ready"')) break;
  }
  child.stdout.resume();
  return { url: new URL("/infer", url), child, ended };
}

async function load(servers, ms, seed) {
  const uniform = seededRandom(seed);
  const replies = [];
  const startMs = performance.now();
  for (let dueMs = startMs, i = 0; dueMs < startMs + ms; i++) {
    const sentMs = dueMs;
    if (dueMs > performance.now() + 0.5) await sleep(dueMs - performance.now());
    replies.push(
      ask(servers[i % servers.length].url).then(({ batch_size }) => ({
        size: batch_size,
        latencyMs: performance.now() - sentMs,
      })),
    );
    dueMs -= (Math.log(1 - uniform()) * 1000) / ratePerS;
  }
  const answered = await Promise.all(replies);
  const latenciesMs = answered.map(({ latencyMs }) => latencyMs).sort((a, b) => a - b);
  const mean = (of) => answered.reduce((sum, reply) => sum + of(reply), 0) / answered.length;
  return {
    batchSize: mean(({ size }) => size),
    modelMs: mean(({ size }) => fixedMs / size + perItemMs),
    p50: latenciesMs[Math.floor(latenciesMs.length * 0.5)],
    p99: latenciesMs[Math.floor(latenciesMs.length * 0.99)],
  };
}

function ask(url) {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json" };
    const sent = request(url, { method: "POST", agent, headers }, (reply) => {
      let body = "";
      reply.setEncoding("utf8").on("data", (text) => (body += text));
      reply.on("end", () => (reply.statusCode === 200 ? resolve(JSON.parse(body)) : reject(new Error(body))));
    });
    sent.on("error", reject).end('{"input":1}');
  });
}
