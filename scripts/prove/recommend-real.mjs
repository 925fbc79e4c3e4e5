/**
 * `npm run prove -- recommend-real [--seconds 20] [--rounds 3] [--only onnx,postgres,api]`: three real services are recorded under
 * settings that somebody gave them: an ONNX model behind `sheaf serve`, rows for PostgreSQL with fsync, and an embeddings API.
 * `sheaf recommend` reads the record, and the same calls come again, under both settings in turns. Latency is that of the batcher,
 * from the records. Exit code 1 if a verdict is not the expected one, or the recommended settings are worse.
 */
import { execFile, spawnSync } from "node:child_process";
import { createReadStream, createWriteStream, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { finished } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs, promisify } from "node:util";
import { pathToFileURL } from "node:url";
import { auto, fixedWindow, greedy } from "sheaf";
import { openaiEmbeddings, openaiFetch } from "sheaf/adapters/openai";
import { insertBatcher } from "sheaf/adapters/postgres";
import { readRecords, seededRandom } from "sheaf/internal/tuning";
import { recordCalls } from "sheaf/tuning";
import { machine, median, table } from "../../bench/lib/machine.mjs";
import { cpuMsOf, stealSeconds } from "../../bench/lib/process-cpu.mjs";
import { serveModel } from "../../packages/sheaf-server/dist/load/http/server-process.js";
import { embeddingApi } from "../../test/fakes/embedding-api.mjs";
import { startPostgres } from "../../test/integration/lib/postgres.mjs";
import { root } from "../lib/files.mjs";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "20" },
    rounds: { type: "string", default: "3" },
    only: { type: "string", default: "onnx,postgres,api" },
  },
});
const [seconds, rounds] = [values.seconds, values.rounds].map(Number);
const entry = `${root}/packages/sheaf-server/dist/cli/main.js`;
const folder = mkdtempSync(join(tmpdir(), "sheaf-recommend-"));
/** A round in which the hypervisor kept a larger share of a core is played again. */
const mostSteal = 0.02;
console.log(
  `${machine()}\nnpm run prove -- recommend-real --seconds ${seconds} --rounds ${rounds} --only ${values.only}`,
);

/** Exit code 3 is a verdict. */
const sheaf = (...args) =>
  promisify(execFile)(process.execPath, [entry, ...args], { maxBuffer: 2 ** 26 }).catch((error) => {
    if (error.code === 3) return error;
    throw error;
  });

/** The built-in perceptron behind HTTP: recorded by RECORD_FILE, called by `sheaf bench`, configured by `--write-config`. */
function onnx(config, load) {
  const path = (which) => join(folder, `${which}.json`);
  for (const which of ["present", "recommended"])
    writeFileSync(path(which), JSON.stringify({ models: [{ model: "mlp" }], ...config }));
  let first;
  return {
    writes: path("recommended"),
    async serve(which, record) {
      const server = await serveModel({ entry, flags: ["--config", path(which), "--record-file", record] });
      try {
        const traffic = first ? ["--trace", first] : ["--duration", `${seconds}s`, "--warm-up", "0s", ...load];
        const cpuMs = cpuMsOf(server.pid);
        await sheaf("bench", `${server.origin}/infer`, ...traffic);
        return cpuMsOf(server.pid) - cpuMs;
      } finally {
        await server.stop();
        first ??= record;
      }
    },
  };
}

const policies = { auto, greedy, "fixed-window": fixedWindow };
const optionsOf = ({ policy, latencyBudgetMs, ...rest }) => ({
  ...rest,
  ...(policy && { policy: policies[policy](policy === "auto" ? { latencyBudgetMs } : {}) }),
});

/** A batcher of the library in this process: calls in groups of any size, at moments that do not depend on it. */
function library({ open, itemOf, close }, present, { perS, group = 1 }) {
  let changes = {};
  return {
    close,
    adopt: (advised) => (changes = advised),
    async serve(which, record) {
      const batcher = open(optionsOf({ ...present, ...(which === "recommended" && changes) }));
      const file = createWriteStream(record);
      const end = recordCalls(batcher, (line) => file.write(`${line}\n`));
      const cpu = process.cpuUsage();
      const random = seededRandom(7);
      const pending = [];
      const startMs = performance.now();
      for (let atMs = 0; atMs < 1000 * seconds; atMs -= (1000 * Math.log(1 - random()) * group) / perS) {
        await sleep(Math.max(0, startMs + atMs - performance.now()));
        for (let i = Math.ceil(random() * (2 * group - 1)); i > 0; i--) pending.push(batcher(itemOf(pending.length)));
      }
      await Promise.all(pending);
      const { user, system } = process.cpuUsage(cpu);
      end();
      await finished(file.end());
      await batcher.close();
      return (user + system) / 1000;
    },
  };
}

async function rowsInPostgres() {
  const project = `${root}/test/integration/`;
  if (!existsSync(`${project}node_modules`))
    spawnSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd: project, stdio: "inherit" });
  const { default: pg } = await import(pathToFileURL(createRequire(project).resolve("pg")).href);
  const server = await startPostgres({ fsync: "on" });
  const pool = new pg.Pool({ connectionString: server.url });
  pool.on("error", () => undefined); // An idle connection, when the server ends.
  await pool.query("CREATE TABLE events (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind text NOT NULL)");
  return {
    open: (options) => insertBatcher(pool, { table: "events", ...options }),
    itemOf: (number) => ({ kind: `kind ${number}` }),
    close: () => pool.end().then(() => server.close()),
  };
}

/** It takes 40 ms a request and 2 ms a text. */
async function embeddings() {
  const api = await embeddingApi({ latencyMs: 40, perItemMs: 2 });
  const client = openaiFetch({ baseURL: api.baseURL, apiKey: "sk-local" });
  return {
    open: (options) => openaiEmbeddings(client, { model: "tiny", maxRetries: 10, ...options }),
    itemOf: (number) => `a text of some words, and its number, which is ${number}`,
    close: api.close,
  };
}

const cases = {
  "onnx, a window of 40 ms": ["change", () => onnx({ schedulerStrategy: "fifo", maxWaitMs: 40 }, ["--rate", "60"])],
  "onnx, defaults": ["change nothing", () => onnx({}, ["--rate", "60"])],
  "postgres, a window of 50 ms": [
    "change",
    async () => library(await rowsInPostgres(), { policy: "fixed-window", maxWaitMs: 50 }, { perS: 100, group: 3 }),
  ],
  "postgres, defaults": ["change nothing", async () => library(await rowsInPostgres(), {}, { perS: 100, group: 3 })],
  "api, a window of 100 ms": [
    "change",
    async () => library(await embeddings(), { policy: "fixed-window", maxWaitMs: 100 }, { perS: 40 }),
  ],
};

async function latencies(record) {
  const lines = createInterface({ input: createReadStream(record) });
  const [{ calls, runs }] = (await readRecords([lines])).values();
  const ms = calls.endMs
    .map((endMs, call) => endMs - calls.atMs[call])
    .filter((one) => !Number.isNaN(one))
    .sort();
  const at = (share) => ms[Math.floor(share * ms.length)];
  return { count: calls.count, p50: at(0.5), p99: at(0.99), runs: runs.length, meanBatch: calls.count / runs.length };
}

async function round(service, which, name) {
  for (let again = 0; ; again++) {
    const record = join(folder, `${name.replaceAll(/\W+/g, "-")}-${which}-${performance.now()}.jsonl`);
    const [fromMs, stolen] = [performance.now(), stealSeconds()];
    const cpuMs = await service.serve(which, record);
    const steal = (1000 * (stealSeconds() - stolen)) / (performance.now() - fromMs);
    const { count, ...figures } = await latencies(record);
    if (steal <= mostSteal || again === 2) return { record, steal, ...figures, cpuMs: cpuMs / count };
  }
}

const shown = (number) => String(Number(number.toPrecision(3)));
const head = ["service", "verdict", "p50 ms", "p99 ms", "served ÷ predicted", "after ÷ before (worst round)"];
console.log("p50 and p99: before, predicted, after. With the same settings after as before, the ratio is the scatter.");
const rows = [[...head, "CPU ms a call", "calls a run", "steal"]];
let isKept = true;
for (const [name, [expected, open]] of Object.entries(cases)) {
  if (!values.only.split(",").some((only) => name.startsWith(only))) continue;
  const service = await open();
  try {
    // The first one is not counted: the model, the disk and the code are cold.
    await round(service, "present", name);
    const { record } = await round(service, "present", name);
    const written = service.writes === undefined ? [] : ["--write-config", service.writes];
    const { stdout } = await sheaf("recommend", record, "--json", ...written);
    const { verdict, because, changes, recommended } = JSON.parse(stdout);
    service.adopt?.(changes);
    console.log(`${name}: ${verdict}, ${because}: ${JSON.stringify(changes)}`);
    const played = { present: [], recommended: [] };
    for (let number = 0; number < rounds; number++)
      for (const which of number % 2 === 0 ? ["present", "recommended"] : ["recommended", "present"])
        played[which].push(await round(service, which, name));
    const of = (which, figure) => median(played[which].map((one) => one[figure]));
    const both = (figure) => `${shown(of("present", figure))}, ${shown(of("recommended", figure))}`;
    const predicted = (figure) => recommended.latencyMs[figure][0];
    const all = (figure) => [of("present", figure), predicted(figure), of("recommended", figure)].map(shown).join(", ");
    const off = (figure) => shown(of("recommended", figure) / predicted(figure));
    const ratios = played.present.map(({ p99 }, number) => played.recommended[number].p99 / p99);
    rows.push([
      name,
      verdict,
      all("p50"),
      all("p99"),
      `${off("p50")}, ${off("p99")}`,
      `${shown(median(ratios))} (${shown(Math.max(...ratios))})`,
      both("cpuMs"),
      both("meanBatch"),
      shown(Math.max(...[...played.present, ...played.recommended].map(({ steal }) => steal))),
    ]);
    console.log(rows.at(-1).join(" | "));
    isKept &&= verdict === expected && (verdict === "change nothing" || median(ratios) < 1);
  } finally {
    await service.close?.();
  }
}
rmSync(folder, { recursive: true });
console.log(`\n${table(rows)}`);
process.exitCode = isKept ? 0 : 1;
