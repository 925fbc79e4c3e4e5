/**
 * `npm run bench -- routes [--rounds 5] [--seconds 5] [--callers 64]`: what the routes of other services cost beside
 * `/v1/embeddings`, each with one text a request from 64 callers in a closed loop, and use-lite behind a server of its own
 * process. A round loads every route in turn, and every other round in the other order. Exit 1 where a route's median has less
 * than 0.97 of the requests of `/v1/embeddings` in the same round, or its mean batch is below 8.
 */
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { runLoad } from "../packages/sheaf-server/dist/load/generator.js";
import { httpTarget } from "../packages/sheaf-server/dist/load/http/http-target.js";
import { renderRequest } from "../packages/sheaf-server/dist/load/http/request.js";
import { batchesBetween, readBatchSizes } from "../packages/sheaf-server/dist/load/http/server-metrics.js";
import { serveModel } from "../packages/sheaf-server/dist/load/http/server-process.js";
import { systemClock } from "../packages/sheaf-server/dist/load/system-clock.js";
import { root } from "../scripts/lib/files.mjs";
import { machine, median, table } from "./lib/machine.mjs";
import { cpuMsOf } from "./lib/process-cpu.mjs";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "5" },
    callers: { type: "string", default: "64" },
  },
});
const [rounds, seconds, callers] = [values.rounds, values.seconds, values.callers].map(Number);
if (!(rounds >= 1 && rounds <= 50 && seconds >= 1 && seconds <= 60 && callers >= 1 && callers <= 1024)) {
  console.error("--rounds takes 1 to 50, --seconds 1 to 60, --callers 1 to 1024");
  process.exit(2);
}
const needed = { ratio: 0.97, batch: 8 };
const model = "use-lite";
const text = (i) => `Text number ${i}, which is about as long as a short sentence is.`;

/** The first is the measure of the others. */
const routes = {
  "/v1/embeddings": (i) => ({ model, input: text(i) }),
  "/embed": (i) => ({ inputs: text(i) }),
  "/v1/embed": (i) => ({ model, texts: [text(i)], input_type: "search_query" }),
  "/v2/embed": (i) => ({ model, texts: [text(i)], input_type: "search_query", embedding_types: ["float"] }),
  "/api/embed": (i) => ({ model, input: text(i) }),
  "/api/embeddings": (i) => ({ model, prompt: text(i) }),
  "/vectors": (i) => ({ text: text(i), config: { pooling_strategy: "masked_mean", task_type: "query" } }),
};
const paths = Object.keys(routes);

console.log(`${machine()}, load average ${loadavg()[0].toFixed(1)}`);
console.log(`npm run bench -- routes --rounds ${rounds} --seconds ${seconds} --callers ${callers}\n`);
const server = await serveModel({ entry: `${root}/packages/sheaf-server/dist/cli/main.js`, model });
const figures = Object.fromEntries(paths.map((path) => [path, []]));
try {
  for (const path of paths) await load(path, 1000); // V8 compiles each route in its first thousand requests.
  for (let round = 0; round < rounds; round++) {
    for (const path of round % 2 === 0 ? paths : paths.toReversed())
      figures[path].push(await load(path, 1000 * seconds));
  }
} finally {
  await server.stop();
}

const [own, ...others] = paths;
const of = (path, name) => median(figures[path].map((figure) => figure[name]));
const ratioOf = (path, name) => median(figures[path].map((figure, round) => figure[name] / figures[own][round][name]));
console.log(
  table([
    ["route, one text a request", "requests/s", `÷ ${own}`, "mean batch", "p99 ms", "CPU µs a request", `÷ ${own}`],
    ...paths.map((path) => [
      path, of(path, "perS").toFixed(0), ratioOf(path, "perS").toFixed(3), of(path, "batch").toFixed(1),
      of(path, "p99Ms").toFixed(1), of(path, "cpuUs").toFixed(0), ratioOf(path, "cpuUs").toFixed(3),
    ]), // prettier-ignore
  ]),
);
console.log(`\nmedians of ${rounds} rounds; needed: ${needed.ratio} of the requests, a mean batch of ${needed.batch}`);
const missed = others.filter((path) => ratioOf(path, "perS") < needed.ratio || of(path, "batch") < needed.batch);
if (missed.length > 0) console.log(`missed: ${missed.join(", ")}`);
process.exit(missed.length === 0 ? 0 : 1);

async function load(path, durationMs) {
  const url = new URL(path, server.origin);
  const headers = { "content-type": "application/json" };
  const requests = Array.from({ length: 256 }, (_, i) =>
    renderRequest({ url, method: "POST", headers, body: JSON.stringify(routes[path](i)) }),
  );
  const target = httpTarget({ url, requests, maxConnections: callers });
  const [before, cpuBefore] = [await readBatchSizes(server.origin), cpuMsOf(server.pid)];
  const options = { configuration: path, target, clock: systemClock, pattern: "closed", callers, seed: 1, durationMs };
  const result = await runLoad(options).finally(() => target.close());
  if (result.ok < result.requests)
    throw new Error(`${path}: ${result.requests - result.ok} failed: ${result.lastErrorBody}`);
  return {
    perS: result.achievedPerS,
    batch: batchesBetween(before, await readBatchSizes(server.origin)).meanSize,
    p99Ms: result.latencyMs.p99,
    cpuUs: (1000 * (cpuMsOf(server.pid) - cpuBefore)) / result.requests,
  };
}
