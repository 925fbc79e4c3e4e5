/**
 * `npm run bench -- text-virtual [--seconds 20] [--classes short,mixed,long] [--loads 0.3,0.6,0.8,0.9]`: the real batcher
 * before a simulated worker that cuts its batches into passes by learned cost and answers pass by pass, on a virtual clock.
 * A pass takes the time of an encoder of MiniLM's shape on two cores. Prints the throughput of callers in a closed loop as a
 * share of the floor: the texts in view (as many as there are callers, at most 512), sorted and cut with the true cost. Then
 * latencies of single texts at shares of the floor of 64 texts. The same on every machine; about a minute and a half.
 */
import { parseArgs } from "node:util";
import { auto, createBatcher, greedy } from "../packages/sheaf/dist/index.js";
import { PassCost, planPasses, runInPasses } from "../packages/sheaf/dist/models/index.js";
import { virtualClock } from "../packages/sheaf/dist/testing/index.js";
import { seededRandom } from "../packages/sheaf/dist/internal/tuning.js";
import { table } from "./lib/machine.mjs";
import { classes } from "./text/texts.mjs";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "20" },
    classes: { type: "string", default: Object.keys(classes).join() },
    loads: { type: "string", default: "0.3,0.6,0.8,0.9" },
  },
});
const seconds = Number(values.seconds);
const chosen = values.classes.split(",");
const loads = values.loads.split(",").map(Number);
if (!(seconds >= 5 && seconds <= 600)) fail("--seconds must be a number, 5 to 600");
if (!chosen.every((name) => name in classes)) fail(`--classes must be of ${Object.keys(classes).join(", ")}`);
if (!loads.every((load) => load > 0 && load < 1)) fail("--loads must be shares of capacity, 0 < load < 1");

/** A fixed part, positions, attention, and a cache that about 600 positions fill. */
const truth = {
  of: (size, length) => 2.6 + 0.115 * size * length * (1 + length / 2500) + 0.05 * Math.max(0, size * length - 600),
};
/** Pass times scatter evenly by so much on either side. */
const scatter = 0.03;
/** Of the thread that answers, for a text. */
const mainMs = 0.25;
/** The first part of a run is not counted. */
const warmUpShare = 0.1;
const ways = {
  "chosen by length, 32": { batchWeight: "sum", maxBatchSize: 32 },
  "apart, 32": { batchWeight: "apart", maxBatchSize: 32 },
  "apart, 128": { batchWeight: "apart", maxBatchSize: 128 },
  "apart, 256": { batchWeight: "apart", maxBatchSize: 256 },
  "greedy, 128": { batchWeight: "apart", maxBatchSize: 128, policy: greedy },
};

console.log(`npm run bench -- text-virtual ${process.argv.slice(2).join(" ")}\n`);
console.log(table([["share of the floor", ...Object.keys(ways)], ...(await closedRows())]));
console.log(`\n${table([["p50 · p99 ms", ...Object.keys(ways)], ...(await openRows())])}`);

async function closedRows() {
  const rows = [];
  for (const name of chosen)
    for (const [callers, perRequest] of [
      [16, 1],
      [64, 1],
      [16, 32],
    ]) {
      const floor = floorOf(name, Math.min(512, callers * perRequest));
      const row = [perRequest === 1 ? `${name}, ${callers} callers` : `${name}, ${callers} lists of ${perRequest}`];
      for (const way of Object.values(ways))
        row.push(((await run(name, way, { callers, perRequest })).perS / floor).toFixed(2));
      rows.push(row);
    }
  return rows;
}

async function openRows() {
  const rows = [];
  for (const name of chosen)
    for (const load of loads) {
      const row = [`${name}, ${load}`];
      for (const way of Object.values(ways)) {
        const { p50, p99 } = await run(name, way, { perRequest: 1, ratePerS: load * floorOf(name, 64) });
        row.push(`${p50.toFixed(0)} · ${p99.toFixed(0)}`);
      }
      rows.push(row);
    }
  return rows;
}

/** Texts a second of views of that size, cut with the true cost. */
function floorOf(name, view) {
  const random = seededRandom(5);
  let ms = 0;
  const views = 40;
  for (let i = 0; i < views; i++) {
    const lengths = Array.from({ length: view }, () => classes[name](random));
    for (const pass of planPasses(lengths, truth))
      ms += truth.of(pass.length, Math.max(...pass.map((index) => lengths[index])));
  }
  return (1000 * views * view) / ms;
}

/** One load on one batcher: texts a second of a closed loop, or latencies of Poisson arrivals. */
async function run(name, { policy = auto, ...options }, { callers = 0, perRequest, ratePerS }) {
  const clock = virtualClock();
  const random = seededRandom(3);
  const call = createBatcher(simulatedWorker(clock, random), {
    ...options,
    policy: policy(),
    weigh: (tokens) => tokens,
    maxBatchWeight: 4_096,
    maxWaitMs: 50,
    maxQueueSize: 100_000,
    clock,
  });
  await call.ready();
  const [fromMs, endMs] = [1000 * seconds * warmUpShare, 1000 * seconds];
  const latenciesMs = [];
  let answered = 0;
  let freeAtMs = 0;
  const request = async () => {
    freeAtMs = Math.max(clock.now(), freeAtMs) + mainMs * perRequest;
    await clock.sleep(freeAtMs - clock.now());
    const startedAtMs = clock.now();
    await call.many(Array.from({ length: perRequest }, () => classes[name](random)));
    if (startedAtMs >= fromMs) latenciesMs.push(clock.now() - startedAtMs);
    if (clock.now() >= fromMs && clock.now() < endMs) answered += perRequest;
  };
  if (ratePerS === undefined)
    for (let caller = 0; caller < callers; caller++)
      void (async () => {
        while (clock.now() < endMs) await request();
      })();
  else
    for (let atMs = 0; atMs < endMs; atMs -= (1000 * Math.log(1 - random())) / ratePerS)
      clock.at(atMs, () => void request());
  await clock.idle();
  latenciesMs.sort((a, b) => a - b);
  const quantile = (share) => latenciesMs[Math.floor(share * latenciesMs.length)];
  return { perS: (1000 * answered) / (endMs - fromMs), p50: quantile(0.5), p99: quantile(0.99) };
}

/** Runs one batch after the other, as a worker thread does, and takes one ahead. */
function simulatedWorker(clock, random) {
  const cost = new PassCost();
  for (const [size, length] of [
    [1, 16],
    [1, 64],
    [8, 16],
    [1, 128],
    [32, 16],
  ])
    cost.learn(size, length, truth.of(size, length));
  const pass = async (lengths) => {
    const ms = truth.of(lengths.length, Math.max(...lengths));
    await clock.sleep(ms * (1 - scatter + 2 * scatter * random()));
    return lengths;
  };
  let before = Promise.resolve();
  return {
    slots: 1,
    prefetch: 1,
    reportsStart: true,
    ready: async () => undefined,
    close: async () => undefined,
    run: (lengths, handle) => {
      const results = before.then(async () => {
        handle.started();
        const startedAtMs = clock.now();
        const last = await runInPasses(lengths, { lengths, cost, clock, run: pass, answer: handle.answer });
        handle.measured(clock.now() - startedAtMs);
        return last;
      });
      before = results.catch(() => undefined);
      return results;
    },
  };
}

function fail(message) {
  console.error(message);
  process.exit(2);
}
