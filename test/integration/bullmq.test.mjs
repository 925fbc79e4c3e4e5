// BullMQ's free edition on a real Redis: what BullMQ promises a job still holds when jobs run in batches.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Queue, QueueEvents, UnrecoverableError, Worker } from "bullmq";
import { Redis } from "ioredis";
import { fixedWindow } from "sheaf";
import { batchProcessor } from "sheaf/adapters/bullmq";
import { assertResult } from "../support/result.mjs";
import { skipWithoutRedis, startRedis } from "./lib/redis.mjs";
import { untilTrue } from "./lib/until.mjs";

const skip = skipWithoutRedis;
let redis;
let connection;
const open = [];
let queues = 0;

before(async () => {
  if (skip) return;
  redis = await startRedis();
  connection = { host: "127.0.0.1", port: redis.port, maxRetriesPerRequest: null };
});
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});
after(() => redis?.close());

/** A queue of its own, a worker over a batch function that notes its batches, and a way to wait for the end. */
async function setUp(run, { adding = {}, worker: workerOptions = {}, ...options } = {}) {
  const name = `q${++queues}`;
  const queue = new Queue(name, { connection });
  open.push(queue);
  queue.on("error", () => undefined); // connection faults are the tests' own
  const batches = [];
  const batched = batchProcessor((jobs, context) => {
    batches.push(jobs.map(({ data }) => data));
    return run(jobs, context);
  }, options);
  const start = () => {
    const worker = new Worker(name, batched.process, {
      connection,
      concurrency: batched.concurrency,
      ...workerOptions,
    });
    worker.on("error", () => undefined);
    open.push(worker);
    return worker;
  };
  const addAll = (data) => queue.addBulk(data.map((each) => ({ name: "job", data: each, opts: adding })));
  return { name, queue, batches, batched, start, addAll };
}

/** Waits until so many jobs have ended. */
const ended = (queue, { completed = 0, failed = 0 }) =>
  untilTrue(async () => {
    const counts = await queue.getJobCounts("completed", "failed");
    return counts.completed === completed && counts.failed === failed;
  });

const numbers = (count) => Array.from({ length: count }, (_, i) => i);
const valuesOf = async (queue) =>
  (await queue.getCompleted(0, -1)).map(({ data, returnvalue }) => [data, returnvalue]).sort(([a], [b]) => a - b);

test("jobs share batches, and each has its own result", { skip }, async () => {
  const { queue, addAll, batches, start, batched } = await setUp(
    async (jobs) => {
      await sleep(20);
      return jobs.map(({ data }) => 2 * data);
    },
    { maxBatchSize: 50 },
  );
  assert.equal(batched.concurrency, 100);
  await addAll(numbers(500));
  start();
  await ended(queue, { completed: 500 });
  assertResult(await valuesOf(queue), numbers(500).map((n) => [n, 2 * n])); // prettier-ignore
  assert.equal(batches.flat().length, 500, "each ran once");
  assert.ok(batches.length <= 50, `${batches.length} batches of 500 jobs`);
});

test("an Error in a place fails its job; BullMQ tries that job again, and no other", { skip }, async () => {
  const tries = new Map();
  const { queue, addAll, start } = await setUp(
    async (jobs) =>
      jobs.map(({ data }) => {
        tries.set(data, (tries.get(data) ?? 0) + 1);
        if (data % 10 === 0 && tries.get(data) < 3) return new Error(`not yet ${data}`);
        return data === 7 ? new UnrecoverableError("never") : data;
      }),
    { adding: { attempts: 3, backoff: { type: "fixed", delay: 10 } } },
  );
  await addAll(numbers(100));
  start();
  await ended(queue, { completed: 99, failed: 1 });
  for (const [n, count] of tries) assert.equal(count, n % 10 === 0 ? 3 : 1, `job ${n}`);
  const [failed] = await queue.getFailed();
  assert.deepEqual([failed.data, failed.failedReason, failed.attemptsMade], [7, "never", 1]);
});

test("a poison job that fails its whole batch fails alone", { skip }, async () => {
  const { queue, addAll, start } = await setUp(async (jobs) => {
    if (jobs.some(({ data }) => data === 13)) throw new Error("poison");
    return jobs.map(({ data }) => data);
  });
  await addAll(numbers(100));
  start();
  await ended(queue, { completed: 99, failed: 1 });
  const [failed] = await queue.getFailed();
  assert.deepEqual([failed.data, failed.failedReason], [13, "poison"]);
});

test(
  "when the service is down every job of the batch fails, keeps its attempts, and succeeds later",
  { skip },
  async () => {
    let down = true;
    const { queue, addAll, start, batches } = await setUp(
      async (jobs) => {
        if (down) throw Object.assign(new Error("unavailable"), { status: 503 });
        return jobs.map(({ data }) => data);
      },
      { adding: { attempts: 20, backoff: { type: "fixed", delay: 50 } } },
    );
    await addAll(numbers(60));
    const worker = start();
    await once(worker, "failed");
    const before = batches.length;
    down = false;
    await ended(queue, { completed: 60 });
    const ran = batches.slice(0, before).flat();
    assert.equal(
      new Set(ran).size,
      ran.length,
      "a batch that fails is not bisected: no job runs again before it has failed",
    );
  },
);

test("waitUntilFinished gives each caller its own result", { skip }, async () => {
  const { name, queue, start } = await setUp(async (jobs) => jobs.map(({ data }) => data.toUpperCase()), {
    adding: {},
  });
  const events = new QueueEvents(name, { connection });
  open.push(events);
  await events.waitUntilReady();
  start();
  // Kept for a while: with removeOnComplete: true the result could be gone before anyone asks for it.
  const jobs = await Promise.all(
    ["a", "b", "c"].map((text) => queue.add("job", text, { removeOnComplete: { age: 60 } })),
  );
  const results = await Promise.all(jobs.map((job) => job.waitUntilFinished(events)));
  assert.deepEqual(results, ["A", "B", "C"]);
});

test("groupKey keeps tenants apart, orderKey keeps a user's jobs in order", { skip }, async () => {
  const { queue, addAll, start, batches } = await setUp(
    async (jobs) => {
      await sleep(5);
      return jobs.map(({ data }) => data.n);
    },
    { maxBatchSize: 10, groupKey: ({ data }) => data.tenant, orderKey: ({ data }) => data.user },
  );
  await addAll(numbers(60).map((n) => ({ n, tenant: n % 2, user: `${n % 2}/${n % 6}` })));
  start();
  await ended(queue, { completed: 60 });
  for (const batch of batches) assert.equal(new Set(batch.map(({ tenant }) => tenant)).size, 1);
  const seen = new Map();
  for (const { user, n } of batches.flat()) {
    assert.ok((seen.get(user) ?? -1) < n, `${user}: ${n} after ${seen.get(user)}`);
    seen.set(user, n);
  }
});

test("locks are renewed while jobs run and while they wait for their batch", { skip }, async () => {
  const redisClient = new Redis(connection);
  open.push({ close: () => redisClient.quit() });
  let renew;
  const renewed = new Promise((resolve) => (renew = resolve));
  const { name, queue, addAll, start, batches } = await setUp(
    async (jobs) => {
      await renewed;
      return jobs.map(({ data }) => data);
    },
    // So long that no pause of the machine loses one.
    { maxBatchSize: 5, worker: { lockDuration: 600_000, lockRenewTime: 200 } },
  );
  await addAll(numbers(10));
  start();
  // A lock that is renewed lasts longer again. Five jobs run, five wait.
  const seen = new Map();
  await untilTrue(async () => {
    for (const { id } of await queue.getActive()) {
      const lasts = await redisClient.pttl(`bull:${name}:${id}:lock`);
      const { last = lasts, renewals = 0 } = seen.get(id) ?? {};
      seen.set(id, { last: lasts, renewals: renewals + (lasts > last ? 1 : 0) });
    }
    return seen.size === 10 && [...seen.values()].every(({ renewals }) => renewals >= 2);
  });
  assert.equal(batches.flat().length, 5);
  renew();
  await ended(queue, { completed: 10 });
  assert.equal(batches.flat().length, 10, "each ran once");
});

test(
  "close: what waits for a window goes at once, every job that was taken ends, the rest stays queued",
  { skip },
  async () => {
    const { queue, addAll, start, batched, batches } = await setUp(
      async (jobs) => {
        await sleep(50);
        return jobs.map(({ data }) => data);
      },
      { maxBatchSize: 8, policy: fixedWindow({ trigger: "size" }) },
    );
    await addAll(numbers(100));
    const worker = start();
    await once(worker, "completed");
    await batched.close(worker);
    const counts = await queue.getJobCounts("completed", "failed", "active", "waiting");
    assert.deepEqual([counts.active, counts.failed, counts.completed + counts.waiting], [0, 0, 100]);
    assert.equal(batches.flat().length, counts.completed);
    assert.ok(counts.waiting > 0, "it ended before the queue was empty");
  },
);

test(
  "a lock that is lost in the middle of a batch: its job runs again, alone, and the others are done",
  { skip },
  async () => {
    const redisClient = new Redis(connection);
    open.push({ close: () => redisClient.quit() });
    let losing = true;
    const { name, queue, addAll, start, batches } = await setUp(
      async (jobs) => {
        if (losing) await redisClient.del(`bull:${name}:${jobs[0].id}:lock`);
        losing = false;
        return jobs.map(({ data }) => 2 * data);
      },
      // Only the lock that is deleted is ever missing.
      { maxBatchSize: 10, worker: { lockDuration: 600_000, stalledInterval: 500, maxStalledCount: 3 } },
    );
    await addAll(numbers(10));
    start();
    await ended(queue, { completed: 10 });
    assertResult(await valuesOf(queue), numbers(10).map((n) => [n, 2 * n])); // prettier-ignore
    assert.deepEqual(batches.at(-1), [batches[0][0]]);
  },
);

test("Redis is killed and comes back in the middle: no job is lost, and each has its result", { skip }, async () => {
  const { queue, addAll, start, batches } = await setUp(
    async (jobs) => {
      await sleep(30);
      return jobs.map(({ data }) => 2 * data);
    },
    {
      maxBatchSize: 10,
      worker: { lockDuration: 1000, stalledInterval: 500, maxStalledCount: 1000, runRetryDelay: 200 },
    },
  );
  await addAll(numbers(200));
  const worker = start();
  await untilTrue(() => batches.length >= 4);
  const isSeen = once(worker, "error");
  await redis.stop("SIGKILL");
  await isSeen;
  await redis.start();
  await ended(queue, { completed: 200 });
  assertResult(await valuesOf(queue), numbers(200).map((n) => [n, 2 * n])); // prettier-ignore
  const runs = batches.flat().length;
  assert.ok(runs >= 200, `${runs} runs of 200 jobs: at least once`);
});

test(
  "a worker process is killed in the middle of a batch: another finishes every job, at least once",
  { skip },
  async () => {
    const { name, queue, addAll, start, batches } = await setUp(async (jobs) => jobs.map(({ data }) => 2 * data), {
      maxBatchSize: 10,
      worker: { lockDuration: 600_000, stalledInterval: 500, maxStalledCount: 2 },
    });
    await addAll(numbers(60));
    const script = fileURLToPath(new URL("lib/hanging-worker.mjs", import.meta.url));
    const child = spawn(process.execPath, [script, name, String(redis.port)], { stdio: ["ignore", "pipe", "inherit"] });
    await once(child.stdout, "data"); // its first batch runs, and would forever
    child.kill("SIGKILL");
    await once(child, "exit");
    start();
    await ended(queue, { completed: 60 });
    assertResult(await valuesOf(queue), numbers(60).map((n) => [n, 2 * n])); // prettier-ignore
    const stalled = new Set(
      (await queue.getCompleted(0, -1)).filter((job) => job.stalledCounter > 0).map(({ data }) => data),
    );
    assert.ok(stalled.size > 0, "the killed worker had taken some");
    for (const batch of batches)
      if (batch.some((n) => stalled.has(n)))
        assert.equal(batch.length, 1, `a stalled job runs alone, got ${batch.join()}`);
  },
);
