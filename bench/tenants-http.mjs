/**
 * `npm run bench -- tenants-http [--seconds 8] [--rounds 3] [--run-ms "40 1.2"] [--workers 1] [--fleet]`: tenants over HTTP
 * with keys of their own, on the real clock.
 * `sheaf serve` with a file of keys serves a model that sleeps 40 + 1.2 n ms in batches of 4; nine clients send 5 % of its
 * capacity each, and in every other round a tenth sends ten times the capacity, from a process of its own. Prints the nine's
 * p50 and p99 alone and beside the flood, how many of them were refused, and all answers ÷ capacity. With `--fleet` the same
 * of two gateways, to which the requests go in turn, and so many workers.
 */
import { fork, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "../scripts/lib/files.mjs";
import { startFleet } from "../test/support/fleet-processes.mjs";
import { machine, median, table } from "./lib/machine.mjs";

const maxBatchSize = 4;
const model = `${root}/test/support/fleet-worker.mjs`;
const victims = 9;

if (process.send === undefined) await main();
else process.once("message", async (load) => process.send(await send(load)));

async function main() {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "8" },
      rounds: { type: "string", default: "3" },
      "run-ms": { type: "string", default: "40 1.2" },
      workers: { type: "string", default: "1" },
      fleet: { type: "boolean", default: false },
    },
  });
  const workers = Number(values.workers);
  const durationS = Number(values.seconds);
  const rounds = Number(values.rounds);
  if (!(durationS >= 2 && durationS <= 60 && Number.isInteger(rounds) && rounds >= 1 && rounds <= 20)) {
    console.error("--seconds must be 2 to 60, and --rounds an integer from 1 to 20");
    process.exit(2);
  }
  if (!(Number.isInteger(workers) && workers >= 1 && workers <= 8)) {
    console.error("--workers must be an integer from 1 to 8");
    process.exit(2);
  }
  const [fixedMs, perItemMs] = values["run-ms"].split(" ").map(Number);
  if (!(fixedMs >= 0 && perItemMs > 0 && fixedMs + perItemMs <= 1000)) {
    console.error('--run-ms must be "FIXED PER-ITEM", in milliseconds, together at most 1000');
    process.exit(2);
  }
  const capacityPerS = (1000 * maxBatchSize * workers) / (fixedMs + perItemMs * maxBatchSize);
  console.log(`${machine()}, load average ${loadavg()[0].toFixed(1)}`);
  const system = values.fleet ? " --fleet" : "";
  const options = `--seconds ${durationS} --rounds ${rounds} --run-ms "${values["run-ms"]}" --workers ${workers}${system}`;
  console.log(`npm run bench -- tenants-http ${options}\n`);

  const folder = mkdtempSync(join(tmpdir(), "sheaf-keys-"));
  const keys = Array.from({ length: victims + 1 }, () => randomBytes(32).toString("base64url"));
  const entries = keys.map((key, index) => ({
    name: index < victims ? `client ${index + 1}` : "flood",
    sha256: createHash("sha256").update(key).digest("hex"),
  }));
  writeFileSync(join(folder, "keys.json"), JSON.stringify({ keys: entries }));
  const env = {
    RUN_MS: values["run-ms"],
    MAX_BATCH_SIZE: String(maxBatchSize),
    API_KEYS_FILE: join(folder, "keys.json"),
  };
  const { ports, stop } = values.fleet ? await fleetOf(workers, env) : await serverOf(workers, env);
  try {
    const calm = { ports, keys: keys.slice(0, victims), ratePerS: 0.05 * capacityPerS, durationS, isWhole: true };
    const flood = { ports, keys: keys.slice(victims), ratePerS: 10 * capacityPerS, durationS: durationS + 2 };
    await inProcess({ ...calm, durationS: 2 });
    const alone = [];
    const beside = [];
    const floods = [];
    for (let round = 0; round < rounds; round++) {
      alone.push(await inProcess(calm));
      const flooding = inProcess(flood);
      // From when its queue is full.
      await sleep(1500);
      beside.push(await inProcess(calm));
      floods.push(await flooding);
    }
    const at = (kind, portion) => median(kind.map(({ latencyMs }) => quantile(latencyMs, portion)));
    const refused = beside.reduce((sum, one) => sum + one.refused + one.failed, 0);
    const asked = beside.reduce((sum, one) => sum + one.refused + one.failed + one.latencyMs.length, 0);
    const answeredPerS = beside.map(
      ({ latencyMs }, round) => latencyMs.length / durationS + floods[round].latencyMs.length / (durationS + 2),
    );
    const ms = (value) => value.toFixed(0);
    console.log(
      table([
        ["nine clients, 5 % of capacity each", "p50 ms", "p99 ms", "refused or failed"],
        ["alone", ms(at(alone, 0.5)), ms(at(alone, 0.99)), String(alone.reduce((sum, one) => sum + one.refused + one.failed, 0))], // prettier-ignore
        ["beside 10 × capacity", ms(at(beside, 0.5)), ms(at(beside, 0.99)), `${refused} of ${asked}`],
        ["beside ÷ alone", (at(beside, 0.5) / at(alone, 0.5)).toFixed(2), (at(beside, 0.99) / at(alone, 0.99)).toFixed(2), ""], // prettier-ignore
      ]),
    );
    const sent = floods.reduce((sum, one) => sum + one.sent, 0);
    const answered = floods.reduce((sum, one) => sum + one.latencyMs.length, 0);
    console.log(`all answers ÷ capacity: ${(median(answeredPerS) / capacityPerS).toFixed(2)}`);
    console.log(`the flood: ${sent} requests, ${answered} answered, ${floods.reduce((sum, one) => sum + one.refused, 0)} refused`); // prettier-ignore
  } finally {
    await stop();
    rmSync(folder, { recursive: true });
  }
}

async function fleetOf(workers, env) {
  const fleet = await startFleet({ env: { ...env, WORKERS: "1" }, via: "direct", workers, model });
  return { ports: fleet.gateways.map(({ port }) => port), stop: fleet.stop };
}

async function serverOf(workers, env) {
  const server = spawn(process.execPath, [`${root}/packages/sheaf-server/dist/cli/main.js`, "serve", model], {
    cwd: root,
    env: { ...process.env, PORT: "0", LOG_LEVEL: "info", WORKERS: String(workers), ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const stop = async () => {
    server.kill("SIGKILL");
    await once(server, "exit");
  };
  return { ports: [await portOf(server)], stop };
}

/** A load in a process of its own: the cost of sending one must not show in the latency of the other. */
async function inProcess(load) {
  const child = fork(import.meta.filename);
  child.send(load);
  const [result] = await once(child, "message");
  child.kill();
  return result;
}

/** Poisson requests of each key, which do not wait for the server. Latency counts from when a request was due. */
async function send({ ports, keys, ratePerS, durationS, isWhole = false }) {
  const agent = new Agent({ keepAlive: true, maxSockets: Infinity });
  const body = JSON.stringify({ input: { id: 1 } });
  const result = { sent: 0, refused: 0, failed: 0, latencyMs: [] };
  const startedAt = performance.now();
  const ask = (key, dueAtMs) => {
    const port = ports[result.sent++ % ports.length];
    return new Promise((resolve) => {
      const call = request(
        {
          port,
          host: "127.0.0.1",
          path: "/infer",
          method: "POST",
          agent,
          headers: {
            authorization: `Bearer ${key}`,
            "content-type": "application/json",
            "content-length": body.length,
          },
        },
        (response) => {
          response.resume().on("end", () => {
            if (response.statusCode === 200) result.latencyMs.push(performance.now() - startedAt - dueAtMs);
            else if (response.statusCode === 429) result.refused++;
            else result.failed++;
            resolve();
          });
        },
      );
      call.on("error", () => {
        result.failed++;
        resolve();
      });
      call.end(body);
    });
  };
  const open = new Set();
  const next = keys.map(() => nextAfter(0, ratePerS));
  while (performance.now() - startedAt < 1000 * durationS) {
    const nowMs = performance.now() - startedAt;
    for (const [index, key] of keys.entries())
      for (; next[index] < nowMs; next[index] = nextAfter(next[index], ratePerS)) {
        const asked = ask(key, next[index]).then(() => open.delete(asked));
        open.add(asked);
      }
    await sleep(1);
  }
  // Answers to a flood that still waits do not count: they come after the measured time.
  if (isWhole) await Promise.all(open);
  return { ...result, latencyMs: [...result.latencyMs] };
}

function nextAfter(atMs, ratePerS) {
  return atMs - (1000 * Math.log(1 - Math.random())) / ratePerS;
}

function quantile(latencyMs, portion) {
  const sorted = latencyMs.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(portion * sorted.length))];
}

function sleep(ms) {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}

/** The port of a server, once its model is ready. */
function portOf(server) {
  return new Promise((resolve, reject) => {
    let output = "";
    server.stdout.on("data", (text) => {
      output += text;
      const port = /127\.0\.0\.1:(\d+)/.exec(output)?.[1];
      if (port !== undefined && output.includes('"msg":"ready"')) resolve(Number(port));
    });
    server.on("exit", () => reject(new Error(`the server ended: ${output}`)));
  });
}
