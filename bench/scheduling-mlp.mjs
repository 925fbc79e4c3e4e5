/**
 * `npm run bench -- scheduling-mlp [--rounds 3] [--ms 1500]`: auto, greedy, fifo (hybrid window of 50 ms) and adaptive on
 * the real `mlp` model in a worker thread and on the real clock, side by side: each policy has a worker of its own, and
 * they take turns in every round. Open loop at three loads, latency from the intended send time; closed loops.
 */
import { parseArgs } from "node:util";
import { adaptive, auto, createBatcher, greedy, window } from "sheaf";
import { workerThread } from "sheaf/node";
import { seededRandom } from "sheaf/tuning";
import { machine, median, table } from "./lib/machine.mjs";

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "3" }, ms: { type: "string", default: "1500" } },
});
const rounds = Number(values.rounds);
const durationMs = Number(values.ms);
if (!(Number.isInteger(rounds) && rounds >= 1 && rounds <= 20 && durationMs >= 100 && durationMs <= 20_000)) {
  console.error("--rounds must be an integer, 1 to 20, and --ms 100 to 20000");
  process.exit(2);
}

const url = new URL("../packages/sheaf-server/dist/runners/mlp-worker.js", import.meta.url);
const policies = {
  auto: () => ({ policy: auto() }),
  greedy: () => ({ policy: greedy() }),
  fifo: () => ({ policy: window(), maxWaitMs: 50 }),
  adaptive: () => ({ policy: adaptive(), maxWaitMs: 50 }),
};
const item = Float32Array.from({ length: 768 }, (_, i) => Math.sin(i));
const batchers = {};
for (const [name, optionsOf] of Object.entries(policies)) {
  batchers[name] = createBatcher(workerThread(url, { data: { threads: 1 } }), {
    ...optionsOf(),
    maxQueueSize: 100_000,
  });
  await batchers[name].ready();
}

const quantile = (sorted, share) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
const summary = (latencies, elapsedMs) => {
  latencies.sort((a, b) => a - b);
  const mean = latencies.reduce((sum, ms) => sum + ms, 0) / latencies.length;
  return { mean, p99: quantile(latencies, 0.99), perS: (1000 * latencies.length) / elapsedMs };
};

/** Poisson calls at a rate; what is due by now is sent in one turn, and latency counts from when it was due. */
async function openLoop(batcher, perS, seed) {
  const uniform = seededRandom(seed);
  const latencies = [];
  const calls = [];
  const startMs = performance.now();
  let dueMs = startMs;
  while (dueMs < startMs + durationMs) {
    const nowMs = performance.now();
    for (; dueMs <= nowMs; dueMs -= (Math.log(1 - uniform()) * 1000) / perS) {
      const sentMs = dueMs;
      calls.push(batcher(item).then(() => latencies.push(performance.now() - sentMs)));
    }
    await new Promise((resolve) => (dueMs - nowMs > 1.5 ? setTimeout(resolve, 1) : setImmediate(resolve)));
  }
  await Promise.all(calls);
  return summary(latencies, performance.now() - startMs);
}

async function closedLoop(batcher, clients) {
  const latencies = [];
  const startMs = performance.now();
  const client = async () => {
    for (let sentMs = startMs; sentMs < startMs + durationMs; sentMs = performance.now()) {
      await batcher(item);
      latencies.push(performance.now() - sentMs);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  return summary(latencies, performance.now() - startMs);
}

// Everybody learns the model first; what the best of them serves is taken for its capacity.
let capacityPerS = 0;
for (const batcher of Object.values(batchers)) {
  const { perS } = await closedLoop(batcher, 64);
  capacityPerS = Math.max(capacityPerS, perS);
}
const scenarios = {
  ...Object.fromEntries(
    [0.1, 0.35, 0.7].map((load) => [
      `open, ${load} of ${Math.round(capacityPerS)}/s`,
      (batcher, seed) => openLoop(batcher, load * capacityPerS, seed),
    ]),
  ),
  "closed, 4 callers": (batcher) => closedLoop(batcher, 4),
  "closed, 32 callers": (batcher) => closedLoop(batcher, 32),
};

console.log(`${machine()}\nnpm run bench -- scheduling-mlp --rounds ${rounds} --ms ${durationMs}\n`);
const rows = [["mean ms / p99 ms / calls per s", ...Object.keys(policies)]];
for (const [scenario, run] of Object.entries(scenarios)) {
  const results = Object.fromEntries(Object.keys(policies).map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    const names = Object.keys(policies);
    for (let i = 0; i < names.length; i++) {
      const name = names[(i + round) % names.length];
      results[name].push(await run(batchers[name], round + 1));
    }
  }
  const cell = (name) => {
    const of = (key, digits) => median(results[name].map((result) => result[key])).toFixed(digits);
    return `${of("mean", 2)} / ${of("p99", 2)} / ${of("perS", 0)}`;
  };
  rows.push([scenario, ...Object.keys(policies).map(cell)]);
}
console.log(table(rows));
console.log(
  `\nMedian of ${rounds} rounds; the model as auto's batcher has learned it:`,
  batchers.auto.stats().costModel,
);
await Promise.all(Object.values(batchers).map((batcher) => batcher.close()));
