/**
 * `npm run bench -- several-models [--rounds 5]`: three models in one server, one of them flooded with four times what it
 * can answer; the p99 of the other two, beside what it is without the flood. Every model has its own batcher, limits and
 * workers; HTTP, cores and the generator are shared. Once with models that wait (a GPU, a remote service: 10 + 0.2 n ms),
 * once with models that compute (0.8 + 0.075 n ms of CPU), and that again with a flood of /livez and with half the flood, which
 * shows what is whose. About three minutes.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { runLoad } from "../packages/sheaf-server/dist/load/generator.js";
import { httpTarget } from "../packages/sheaf-server/dist/load/http/http-target.js";
import { renderRequest } from "../packages/sheaf-server/dist/load/http/request.js";
import { serveModel } from "../packages/sheaf-server/dist/load/http/server-process.js";
import { systemClock } from "../packages/sheaf-server/dist/load/system-clock.js";
import { machine, median, table } from "./lib/machine.mjs";

const { values: flags } = parseArgs({ options: { rounds: { type: "string", default: "5" } } });
const rounds = Number(flags.rounds);
const roundMs = 3000;
const warmUpMs = 500;
const entry = fileURLToPath(new URL("../packages/sheaf-server/dist/cli/main.js", import.meta.url));
const workerOf = (name) => fileURLToPath(new URL(`./${name}-worker.mjs`, import.meta.url));

/** `floodPerS` is four times what a model can answer; batches are small, so that this does not drown HTTP itself. */
const scenes = [
  { name: "waiting", worker: workerOf("worker-waiting"), maxBatchSize: 4, floodPerS: 1480, othersPerS: 50 },
  { name: "computing", worker: workerOf("worker-busy"), maxBatchSize: 1, floodPerS: 4570, othersPerS: 50 },
  // As many requests without a model behind them: what of the scene before is HTTP's and the generator's.
  {
    name: "computing, /livez flooded",
    worker: workerOf("worker-busy"),
    maxBatchSize: 1,
    floodPerS: 4570,
    othersPerS: 50,
    flooding: "/livez",
  },
  // Twice what the model can answer: its worker is as busy, HTTP refuses a seventh of the requests.
  {
    name: "computing, half the flood",
    worker: workerOf("worker-busy"),
    maxBatchSize: 1,
    floodPerS: 2280,
    othersPerS: 50,
  },
];

const folder = mkdtempSync(join(tmpdir(), "sheaf-several-"));
const rows = [["models that are", "the others' p99 ms", "with the flood", "ratio", "flood: answered/s", "refused/s"]];
const queues = [];
try {
  for (const scene of scenes) await play(scene);
} finally {
  rmSync(folder, { recursive: true });
}
console.log(machine());
console.log(
  `npm run bench -- several-models --rounds ${rounds} (load average: ${loadavg()[0].toFixed(1)}); medians of the rounds\n`,
);
console.log(table(rows));
console.log(`\nMost items seen waiting during the flood, by model (QUEUE_MAX_SIZE of each in brackets):`);
for (const line of queues) console.log(`  ${line}`);

async function play({ name, worker, maxBatchSize, floodPerS, othersPerS, flooding = "/infer/flooded" }) {
  const limits = { flooded: 64, left: 1000, right: 500 };
  const config = join(folder, "sheaf.config.json");
  const models = Object.entries(limits).map(([model, queueMaxSize]) => ({
    model: worker,
    name: model,
    maxBatchSize,
    queueMaxSize,
  }));
  writeFileSync(config, JSON.stringify({ models }));
  const served = await serveModel({ entry, flags: ["--config", config] });
  const url = (model) => new URL(`/infer/${model}`, served.origin);
  const quiet = [];
  const flooded = [];
  const ratios = [];
  const floods = [];
  const maxWaiting = { flooded: 0, left: 0, right: 0 };
  try {
    for (let round = 0; round < rounds; round++) {
      const others = () =>
        Promise.all(["left", "right"].map((model, i) => load(url(model), othersPerS, 2 * round + i)));
      quiet.push(p99Of(await others()));
      const flood = load(new URL(flooding, served.origin), floodPerS, 1000 + round);
      const watch = watchQueues(served.origin, maxWaiting, flood);
      flooded.push(p99Of(await others()));
      floods.push(await flood);
      await watch;
      ratios.push(flooded.at(-1) / quiet.at(-1));
    }
  } finally {
    await served.stop();
  }
  const perS = (status) => median(floods.map(({ statuses }) => ((statuses[status] ?? 0) * 1000) / roundMs)).toFixed(0);
  const ms = (values) => median(values).toFixed(1);
  rows.push([name, ms(quiet), ms(flooded), median(ratios).toFixed(2), perS("200"), perS("429")]);
  const seen = Object.entries(maxWaiting).map(([model, waiting]) => `${model} ${waiting} (${limits[model]})`);
  queues.push(`${name}: ${seen.join(", ")}`);
}

async function load(url, perS, seed) {
  const isInference = url.pathname.startsWith("/infer");
  const target = httpTarget({
    url,
    requests: [
      renderRequest({ url, headers: {}, ...(isInference ? { method: "POST", body: "1" } : { method: "GET" }) }),
    ],
    maxConnections: 256,
  });
  const result = await runLoad({
    configuration: url.pathname,
    target,
    clock: systemClock,
    pattern: "steady",
    ratePerS: perS,
    seed,
    durationMs: roundMs,
    warmUpMs,
  });
  target.close();
  return result;
}

/** The worse of the two. */
function p99Of(results) {
  for (const { statuses, configuration } of results)
    if (Object.keys(statuses).some((status) => status !== "200"))
      throw new Error(`${configuration}: ${JSON.stringify(statuses)}`);
  return Math.max(...results.map(({ latencyMs }) => latencyMs.p99));
}

async function watchQueues(origin, most, until) {
  let isOver = false;
  void until.then(() => (isOver = true));
  while (!isOver) {
    const text = await (await fetch(`${origin}/metrics`)).text();
    for (const [, model, waiting] of text.matchAll(/^sheaf_queue_items\{batcher="(\w+)"\} (\d+)/gm))
      most[model] = Math.max(most[model], Number(waiting));
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
