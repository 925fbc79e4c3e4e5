// A worker whose first batch never ends: `node hanging-worker.mjs QUEUE PORT` writes a line once that batch runs.
import { Worker } from "bullmq";
import { batchProcessor } from "sheaf/adapters/bullmq";

const [name, port] = process.argv.slice(2);
const batched = batchProcessor(
  (jobs) => {
    console.log(`${jobs.length} jobs`);
    return new Promise(() => setInterval(() => undefined, 1000));
  },
  { maxBatchSize: 10 },
);
const worker = new Worker(name, batched.process, {
  connection: { host: "127.0.0.1", port: Number(port), maxRetriesPerRequest: null },
  concurrency: batched.concurrency,
  lockDuration: 1000,
  stalledInterval: 500, // shared by all workers of a queue: the first to check decides when the next may
});
worker.on("error", () => undefined);
