/**
 * What a CPU-bound function does to the thread that answers: `npm run bench -- worker-event-loop`. The same batches run
 * in this process, in a worker thread and in a worker process; the delay of this event loop and the throughput, side by
 * side, and once more without the lowered priority of the workers. About half a minute.
 */
import { createBatcher } from "sheaf";
import { workerProcess, workerThread } from "sheaf/node";
import { machine, median, table } from "./lib/machine.mjs";
import worker from "./worker-busy-worker.mjs";

const rounds = 5;
const roundMs = 1000;
const callers = 64;
const workerUrl = new URL("./worker-busy-worker.mjs", import.meta.url);

const places = {
  "in process": () => (items) => worker.run(items),
  thread: () => workerThread(workerUrl),
  "thread, priority not lowered": () => workerThread(workerUrl, { niceness: 0 }),
  process: () => workerProcess(workerUrl),
  "process, priority not lowered": () => workerProcess(workerUrl, { niceness: 0 }),
};

console.log(machine());
console.log(`npm run bench -- worker-event-loop: 0.8 + 0.075 n ms of CPU a batch, ${callers} callers in a closed loop`);
const rows = [["where", "event loop p99 ms", "max ms", "items/s"]];
rows.push([
  "(idle)",
  ...(await measured(
    () => sleep(roundMs),
    () => 0,
  )),
]);
for (const [name, open] of Object.entries(places)) {
  const call = createBatcher(open(), { maxBatchSize: 32, concurrency: 1 });
  await call.ready();
  rows.push([
    name,
    ...(await measured(
      () => load(call),
      () => call.stats().items.ok,
    )),
  ]);
  await call.close();
}
console.log(table(rows));

/** The medians of all rounds. */
async function measured(run, answered) {
  await run();
  const p99 = [];
  const max = [];
  const perSecond = [];
  for (let round = 0; round < rounds; round++) {
    const answeredBefore = answered();
    const startedAtMs = performance.now();
    const stop = sampleDelays();
    await run();
    const delaysMs = await stop();
    p99.push(delaysMs[Math.floor((delaysMs.length - 1) * 0.99)]);
    max.push(delaysMs.at(-1));
    perSecond.push(((answered() - answeredBefore) / (performance.now() - startedAtMs)) * 1000);
  }
  return [median(p99).toFixed(1), median(max).toFixed(1), median(perSecond).toFixed(0)];
}

/** How late a timer of 1 ms is, again and again, sorted; a loop that never comes round shows as one long delay. */
function sampleDelays() {
  const delaysMs = [];
  let stopped;
  const next = () => {
    const dueAtMs = performance.now() + 1;
    setTimeout(() => {
      delaysMs.push(Math.max(0, performance.now() - dueAtMs));
      if (stopped === undefined) next();
      else stopped(delaysMs.sort((a, b) => a - b));
    }, 1);
  };
  next();
  return () => new Promise((resolve) => (stopped = resolve));
}

async function load(call) {
  const endAtMs = performance.now() + roundMs;
  const caller = async () => {
    while (performance.now() < endAtMs) await call(1);
  };
  await Promise.all(Array.from({ length: callers }, caller));
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
