/**
 * `npm run prove -- soak [--minutes 10] [--seed N]`: mixed load on the real clock, every feature at once. Every call
 * must settle with its own result or a legitimate error, and the heap must be flat after the first fifth.
 */
import { parseArgs } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { machine, median, table } from "../bench/lib/machine.mjs";
import { BatcherError, createBatcher, greedy, window } from "../packages/sheaf/dist/index.js";

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "10" }, seed: { type: "string", default: "1" } },
});
const minutes = Number(values.minutes);
if (!(minutes >= 0.1 && minutes <= 120)) {
  console.error(`--minutes must be a number from 0.1 to 120, got ${JSON.stringify(values.minutes)}`);
  process.exit(2);
}
// A heap is flat when its later level exceeds its earlier one by less than this: caches of the engine move that much.
const growthBytes = 2 * 2 ** 20;
const callsPerTurn = 20;
const turnMs = 4;
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc");
const random = randomFrom(Number(values.seed));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const counts = { ok: 0, error: 0, timeout: 0, aborted: 0, refused: 0, wrong: 0 };
const abortReason = new Error("the caller went away");
const runError = new Error("the run failed");
let pending = 0;
let made = 0;

const batchers = Object.entries({
  plain: {},
  window: { policy: window(), maxWaitMs: 5 },
  "weights and groups": {
    weigh: ({ id }) => 1 + (id % 9),
    maxBatchWeight: 60,
    batchWeight: "padded",
    groupKey: ({ id }) => `tenant ${id % 5_000}`,
    policy: greedy(),
  },
  order: { orderKey: ({ id }) => id % 97, onBatchError: "bisect" },
  dedupe: { dedupeKey: ({ id }) => id % 50, timeoutMs: 200 },
  "small queue": { maxQueueSize: 20, onQueueFull: "wait", runTimeoutMs: 60 },
  "rate limit": { rateLimit: { items: 400, perMs: 100 }, timeoutMs: 300, maxQueueSize: 500 },
}).map(([name, options]) => createBatcher(runOf(name), { name, maxBatchSize: 16, ...options }));

console.log(`${machine()}\nnpm run prove -- soak --minutes ${minutes} --seed ${values.seed}\n`);
const endsAtMs = Date.now() + minutes * 60_000;
const samples = [];
let nextSampleAtMs = Date.now();
while (Date.now() < endsAtMs) {
  for (let call = 0; call < callsPerTurn; call++) makeCall();
  await sleep(turnMs);
  if (Date.now() < nextSampleAtMs) continue;
  nextSampleAtMs = Date.now() + (minutes * 60_000) / 50;
  // Nothing in flight, so that only what stays is weighed.
  await Promise.all(batchers.map((batcher) => batcher.drain()));
  collect();
  samples.push(process.memoryUsage().heapUsed);
}
await Promise.all(batchers.map((batcher) => batcher.close({ graceMs: 5_000 })));
await sleep(10);
report();

function makeCall() {
  const batcher = batchers[Math.floor(random() * batchers.length)];
  const options = callOptions();
  const kind = random();
  if (kind < 0.94) watch([newItem()], (items) => batcher(items[0], options).then((result) => [result]));
  else if (kind < 0.97) watch(newItems(60), (items) => batcher.many(items, options));
  else watch(newItems(60), (items) => collectAll(batcher.map(items, options)));
}

/** One call or list: every one must end, and with its own results. */
function watch(items, call) {
  made += 1;
  pending += 1;
  call(items).then(
    (results) => {
      pending -= 1;
      const isOwn = results.every((result, index) => result === resultOf(items[index]));
      counts[isOwn && results.length === items.length ? "ok" : "wrong"] += 1;
    },
    (error) => {
      pending -= 1;
      counts[outcomeOf(error)] += 1;
    },
  );
}

function outcomeOf(error) {
  if (error === abortReason) return "aborted";
  if (error === runError || error?.message === "this item is bad") return "error";
  if (!(error instanceof BatcherError)) return "wrong";
  if (error.code === "TIMEOUT") return "timeout";
  if (error.code === "QUEUE_FULL") return "refused";
  return error.code === "RUN_TIMEOUT" ? "error" : "wrong";
}

function callOptions() {
  const which = random();
  if (which < 0.5) return undefined;
  if (which < 0.6) return { priority: "bulk" };
  if (which < 0.65) return { priority: "immediate" };
  if (which < 0.8) return { timeoutMs: 5 + Math.floor(random() * 200) };
  const controller = new AbortController();
  if (random() < 0.5) setTimeout(() => controller.abort(abortReason), random() * 30);
  return { signal: controller.signal };
}

function runOf(name) {
  return async (items, { signal }) => {
    await sleep(1 + random() * 6);
    if (name === "small queue" && random() < 0.01) await Promise.race([sleep(200), aborted(signal)]);
    if (name === "order" ? items.some(({ id }) => id % 211 === 0) : random() < 0.005) throw runError;
    return items.map((item) => (random() < 0.002 ? new Error("this item is bad") : resultOf(item)));
  };
}

function aborted(signal) {
  return new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}

function newItem() {
  return { id: Math.floor(random() * 1e6) };
}

function newItems(most) {
  return Array.from({ length: Math.ceil(random() * most) }, newItem);
}

// Items that dedupe as equal (id % 50) share a result, so it may depend on no more than that.
function resultOf({ id }) {
  return id % 50;
}

async function collectAll(results) {
  const all = [];
  for await (const result of results) all.push(result);
  return all;
}

function report() {
  const stats = batchers.map((batcher) => batcher.stats());
  console.log(
    table([
      ["batcher", "batches", "mean size", "ok", "error", "timeout", "aborted", "rejected", "left"],
      ...stats.map(({ name, batches, meanBatchSize, items, queued, inFlight }) => [
        name,
        batches,
        meanBatchSize.toFixed(1),
        items.ok,
        items.error,
        items.timeout,
        items.aborted,
        items.rejected,
        queued + inFlight,
      ]),
    ]),
  );
  const fifth = Math.ceil(samples.length / 5);
  const early = median(samples.slice(fifth, 2 * fifth));
  const late = median(samples.slice(-fifth));
  console.log(`\n${made} calls and lists: ${JSON.stringify(counts)}, ${pending} never settled`);
  console.log(`heap after warm-up ${mib(early)}, at the end ${mib(late)} (${samples.length} samples)`);
  const verdicts = {
    "every call settled": pending === 0,
    "no wrong result or error": counts.wrong === 0,
    "nothing left in a queue or in flight": stats.every(({ queued, inFlight }) => queued + inFlight === 0),
    [`the heap grew by less than ${mib(growthBytes)}`]: late - early < growthBytes,
  };
  for (const [promise, isKept] of Object.entries(verdicts)) console.log(`${isKept ? "✔" : "✖"} ${promise}`);
  process.exitCode = Object.values(verdicts).every(Boolean) ? 0 : 1;
}

function mib(bytes) {
  return `${(bytes / 2 ** 20).toFixed(2)} MiB`;
}

function randomFrom(seed) {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
