/**
 * `npm run bench -- when-not [--rounds 3] [--ms 1500]`: three workloads that batches do not help and one that they do:
 * items one at a time, a fixed window (32 items or 20 ms) and the default policy, each in turn in every round, and what
 * `recommend` says of the measured cost.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createBatcher, fixedWindow } from "sheaf";
import { calibrate, recommend } from "sheaf/tuning";
import { seededRandom } from "sheaf/internal/tuning";
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

/** Keeps the thread busy: what a computation on this thread does. */
const perItem = (items) => {
  const endMs = performance.now() + 0.5 * items.length;
  while (performance.now() < endMs);
  return items;
};
/** A round trip: 10 ms however many items, and 0.3 ms each. */
const roundTrip = async (items) => {
  await sleep(10 + 0.3 * items.length);
  return items;
};

const workloads = {
  "no fixed part: 0.5 ms an item, 16 callers": { run: perItem, load: closed(16), advice: { ratePerS: 1500 } },
  "only latency counts: 10 + 0.3 n ms, 5 calls/s": { run: roundTrip, load: poisson(5), advice: { ratePerS: 5 } },
  "strict order: 10 + 0.3 n ms, each after the last": {
    run: roundTrip,
    load: closed(1),
    advice: { ratePerS: 50, order: "strict" },
  },
  "for comparison: 10 + 0.3 n ms, 32 callers": { run: roundTrip, load: closed(32), advice: { ratePerS: 500 } },
};
const contenders = {
  "one at a time": () => ({ maxBatchSize: 1 }),
  "window of 20 ms": () => ({ policy: fixedWindow(), maxWaitMs: 20 }),
  "default (auto)": () => ({}),
};

/** n callers, each of which calls again when it is answered. */
function closed(callers) {
  return async (call, latenciesMs) => {
    const endMs = performance.now() + durationMs;
    const caller = async () => {
      for (let sentMs = performance.now(); sentMs < endMs; sentMs = performance.now()) {
        await call(sentMs);
        latenciesMs.push(performance.now() - sentMs);
      }
    };
    await Promise.all(Array.from({ length: callers }, caller));
  };
}

/** Calls at random moments, answered or not. */
function poisson(ratePerS) {
  const uniform = seededRandom(1);
  return async (call, latenciesMs) => {
    const endMs = performance.now() + durationMs;
    const calls = [];
    while (performance.now() < endMs) {
      const sentMs = performance.now();
      calls.push(call(sentMs).then(() => latenciesMs.push(performance.now() - sentMs)));
      await sleep((-Math.log(1 - uniform()) * 1000) / ratePerS);
    }
    await Promise.all(calls);
  };
}

async function measured({ run, load }, options) {
  const call = createBatcher(run, { concurrency: 1, ...options });
  await load(call, []); // the compiler, and what auto learns
  const latenciesMs = [];
  const startMs = performance.now();
  await load(call, latenciesMs);
  const perS = (1000 * latenciesMs.length) / (performance.now() - startMs);
  await call.close();
  return { perS, meanMs: latenciesMs.reduce((sum, ms) => sum + ms, 0) / latenciesMs.length };
}

console.log(`${machine()}\nnpm run bench -- when-not --rounds ${rounds} --ms ${durationMs}\n`);
const rows = [["items/s · mean latency", ...Object.keys(contenders)]];
const advice = [];
for (const [title, workload] of Object.entries(workloads)) {
  const results = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    const names = Object.keys(contenders);
    for (let i = 0; i < names.length; i++) {
      const name = names[(i + round) % names.length];
      results[name].push(await measured(workload, contenders[name]()));
    }
  }
  const cell = (name) => {
    const of = (key) => median(results[name].map((result) => result[key]));
    return `${of("perS").toFixed(0)} · ${of("meanMs").toFixed(1)} ms`;
  };
  rows.push([title, ...Object.keys(contenders).map(cell)]);
  const { costModel } = await calibrate(workload.run, { sample: (index) => index, sizes: [1, 4, 16, 32], maxMs: 2000 });
  const { verdict, because } = recommend(costModel, workload.advice);
  advice.push(`${title}\n  ${verdict}: ${because}`);
}
console.log(`${table(rows)}\n\nMedian of ${rounds} rounds. What recommend says:\n${advice.join("\n")}`);
