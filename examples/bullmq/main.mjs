// 300 jobs through BullMQ's free edition, one by one and in batches. Needs a Redis: REDIS_PORT, default 6379.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Queue, QueueEvents, Worker } from "bullmq";
import { batchProcessor } from "sheaf/adapters/bullmq";

const connection = { host: "127.0.0.1", port: Number(process.env.REDIS_PORT ?? 6379), maxRetriesPerRequest: null };
const texts = Array.from({ length: 300 }, (_, i) => `text ${i}`);

// Stands for an API or a database: a call costs 20 ms, however many texts it carries.
let runs = 0;
async function lengthsOf(jobs) {
  runs++;
  await sleep(20);
  return jobs.map(({ data, attemptsMade }) =>
    // An Error in a place fails its own job: BullMQ tries that one again, with its own attempts and backoff.
    data.text === "text 7" && attemptsMade === 0 ? new Error("try me again") : data.text.length,
  );
}

async function drain(title, name, processor, options) {
  const queue = new Queue(name, { connection });
  queue.setMaxListeners(0); // waitUntilFinished listens once for each job
  const events = new QueueEvents(name, { connection });
  await queue.obliterate({ force: true });
  await events.waitUntilReady();
  const job = { attempts: 3, backoff: { type: "fixed", delay: 10 } };
  // Kept for a while: with removeOnComplete: true a result may be gone before anyone reads it.
  const opts = { ...job, removeOnComplete: { age: 60 } };
  const jobs = await queue.addBulk(texts.map((text) => ({ name: "measure", data: { text }, opts })));

  runs = 0;
  const startedAtMs = performance.now();
  const worker = new Worker(name, processor, { connection, ...options });
  const results = await Promise.all(jobs.map((each) => each.waitUntilFinished(events, 30_000)));
  console.log(`${title}: ${texts.length} jobs, ${runs} calls, ${(performance.now() - startedAtMs).toFixed(0)} ms`);
  assert.deepEqual(
    results,
    texts.map(({ length }) => length),
  );
  return {
    worker,
    close: () => Promise.all([events.close(), queue.obliterate({ force: true }).then(() => queue.close())]),
  };
}

const alone = await drain(
  "one by one",
  "sheaf-example-alone",
  async (job) => {
    const [result] = await lengthsOf([job]);
    if (result instanceof Error) throw result;
    return result;
  },
  { concurrency: 4 },
);
assert.equal(runs, 301);
await alone.worker.close();
await alone.close();

const batched = batchProcessor(lengthsOf, { maxBatchSize: 50 });
const { worker, close } = await drain("in batches", "sheaf-example-batched", batched.process, {
  concurrency: batched.concurrency, // 2 × maxBatchSize: one batch runs while the next fills
});
assert.ok(runs < 100, `${runs} calls`);

// The worker takes no more jobs; those it has taken are finished.
await batched.close(worker);
await close();
