// One process of the fleet's bench: a front end that makes its own load, a worker, or both in one process without a queue.
// Told what to do by the messages of bench/fleet.mjs; answers each with one message.
import { connect, headers } from "@nats-io/transport-node";
import { natsFrontEnd, natsWorker } from "../packages/sheaf/dist/adapters/nats/index.js";
import { createBatcher, fixedWindow } from "../packages/sheaf/dist/index.js";
import { seededRandom } from "../packages/sheaf/dist/internal/tuning.js";

const [role, url, durability, policy] = process.argv.slice(2);
const maxBatchSize = 32;
const slots = 2;

/** Costs 5 + 0.2 n ms and no processor: what is measured is the way there and back. */
async function run(items) {
  await new Promise((resolve) => setTimeout(resolve, 5 + 0.2 * items.length));
  return items;
}
const scheduling = policy === "window" ? { policy: fixedWindow(), maxWaitMs: 5 } : { maxWaitMs: 50 };

const queue = { headers, queue: "bench", durability, maxQueueSize: 100_000 };
let ask;
if (role !== "in-process") {
  const connection = await connect({ servers: url, maxReconnectAttempts: -1 });
  if (role === "worker") {
    const worker = natsWorker(createBatcher(run, { maxBatchSize, concurrency: 1, ...scheduling }), {
      ...queue,
      connection,
    });
    await worker.ready();
  } else {
    const frontEnd = natsFrontEnd({ ...queue, connection });
    await frontEnd.ready();
    ask = (item) => frontEnd.detailed(item);
  }
} else {
  const batcher = createBatcher(
    (items, { size }) => {
      for (const item of items) item.batchSize = size;
      return run(items);
    },
    { maxBatchSize, concurrency: slots, maxQueueSize: 100_000, ...scheduling },
  );
  // The item is its own answer, with the size of its batch.
  ask = () => batcher({ batchSize: 0 });
}

const payload = new Float32Array(64);
const jobs = { calibrate, open, closed, usage: async () => process.cpuUsage() };
process.on("message", ({ what, ...how }) => {
  jobs[what](how).then(
    (answer) => process.send(answer),
    (error) => process.send({ error: String(error) }),
  );
});
process.on("disconnect", () => process.exit(0));
process.send({ isReady: true });

/** Median time of a full batch here, timers and all: what the model's limit is computed from. */
async function calibrate() {
  const times = [];
  for (let i = 0; i < 60; i++) {
    const startedAtMs = performance.now();
    await run(new Array(maxBatchSize));
    times.push(performance.now() - startedAtMs);
  }
  return { fullRunMs: times.sort((a, b) => a - b)[30] };
}

/** Poisson arrivals, on schedule whatever the answers do; latency counts from the intended moment. */
async function open({ rate, durationMs, seed }) {
  const random = seededRandom(seed);
  const latencies = [];
  const sizes = [];
  let failed = 0;
  const startedAtMs = performance.now();
  let dueMs = startedAtMs;
  const running = [];
  while (dueMs < startedAtMs + durationMs) {
    while (dueMs <= performance.now() && dueMs < startedAtMs + durationMs) {
      const dueAtMs = dueMs;
      running.push(
        ask(payload).then(
          ({ batchSize }) => {
            latencies.push(performance.now() - dueAtMs);
            sizes.push(batchSize);
          },
          () => failed++,
        ),
      );
      dueMs += (-Math.log(1 - random()) * 1000) / rate;
    }
    // Not to the microsecond: waiting busily would take the processors from what is measured. It is the same for all.
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(running);
  return { latencies, sizes, failed };
}

async function closed({ callers, durationMs }) {
  let done = 0;
  const sizes = [];
  const startedAtMs = performance.now();
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (performance.now() - startedAtMs < durationMs) {
        const { batchSize } = await ask(payload);
        if (done++ % 16 === 0) sizes.push(batchSize);
      }
    }),
  );
  return { done, tookMs: performance.now() - startedAtMs, sizes, latencies: [], failed: 0 };
}
