/**
 * `npm run bench -- bullmq [--jobs 1000] [--rounds 3] [--run-ms 20]`: that many jobs through BullMQ on a Redis of its own;
 * a call of the service takes --run-ms, whatever it carries. A worker of as many jobs at once, with and without batches,
 * in turns. Needs redis-server and the client: `cd integration && npm ci`. About half a minute.
 */
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { batchProcessor } from "sheaf/adapters/bullmq";
import { startRedis } from "../integration/lib/redis.mjs";
import { machine, median, table } from "./lib/machine.mjs";

const { values } = parseArgs({
  options: {
    jobs: { type: "string", default: "1000" },
    rounds: { type: "string", default: "3" },
    "run-ms": { type: "string", default: "20" },
  },
});
const [count, rounds, runMs] = [Number(values.jobs), Number(values.rounds), Number(values["run-ms"])];
if (!(count >= 1 && count <= 100_000 && rounds >= 1 && rounds <= 100 && runMs >= 0 && runMs <= 1000)) {
  console.error("--jobs 1 … 100000, --rounds 1 … 100, --run-ms 0 … 1000");
  process.exit(2);
}
const { Queue, Worker } = await bullmq();
const redis = await startRedis();
const connection = { host: "127.0.0.1", port: redis.port, maxRetriesPerRequest: null };

// The service takes four calls at a time; more wait, as with most databases and APIs.
function service() {
  let calls = 0;
  const lanes = [0, 1, 2, 3].map(() => Promise.resolve());
  const run = async (jobs) => {
    const lane = calls++ % lanes.length;
    lanes[lane] = lanes[lane].then(() => sleep(runMs));
    await lanes[lane];
    return jobs.map(({ data }) => 2 * data);
  };
  return { run, calls: () => calls };
}

const ways = {
  "a call a job": (run) => ({ process: async (job) => (await run([job]))[0], concurrency: 100 }),
  "batchProcessor": (run) => batchProcessor(run, { maxBatchSize: 50 }),
}; // prettier-ignore

const figures = Object.fromEntries(Object.keys(ways).map((name) => [name, { ms: [], calls: [] }]));
for (let round = 0; round < rounds; round++) {
  const names = round % 2 === 0 ? Object.keys(ways) : Object.keys(ways).reverse();
  for (const name of names) {
    const { run, calls } = service();
    const { process: processor, concurrency } = ways[name](run);
    const queue = new Queue(`bench-${round}-${name.length}`, { connection });
    await queue.addBulk(Array.from({ length: count }, (_, data) => ({ name: "double", data })));
    const startedAtMs = performance.now();
    let wrong = 0;
    const worker = new Worker(queue.name, processor, { connection, concurrency });
    await new Promise((resolve) => {
      let done = 0;
      worker.on("completed", ({ data }, result) => {
        if (result !== 2 * data) wrong++;
        if (++done === count) resolve();
      });
    });
    figures[name].ms.push(performance.now() - startedAtMs);
    figures[name].calls.push(calls());
    if (wrong > 0) throw new Error(`${name}: ${wrong} jobs have another's result`);
    await worker.close();
    await queue.close();
  }
}
await redis.close();

console.log(`${machine()}\nnpm run bench -- bullmq --jobs ${count} --rounds ${rounds} --run-ms ${runMs}\n`);
const base = figures["a call a job"];
console.log(
  table([
    [`${count} jobs`, "calls", "time", "ratio"],
    ...Object.entries(figures).map(([name, { ms, calls }]) => [
      name,
      median(calls),
      `${median(ms).toFixed(0)} ms`,
      `${median(base.ms.map((each, i) => each / ms[i])).toFixed(1)} ×`,
    ]),
  ]),
);

async function bullmq() {
  const integration = createRequire(new URL("../integration/package.json", import.meta.url));
  try {
    return await import(pathToFileURL(integration.resolve("bullmq")).href);
  } catch (error) {
    console.error(`bullmq is not installed: cd integration && npm ci (${error.message})`);
    return process.exit(1);
  }
}
