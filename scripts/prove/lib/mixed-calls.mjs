import { BatcherError, createBatcher, fixedWindow, greedy } from "../../../packages/sheaf/dist/index.js";

const abortReason = new Error("the caller went away");
const runError = new Error("the run failed");

/** Drawn by every program: whether weights explain run times, how they count, and what they limit. */
const weightOptions = (random) => ({
  weigh: ({ id }) => 1 + (id % 9) ** 3,
  batchWeight: ["padded", "sum", "apart"][Math.floor(3 * random())],
  maxBatchWeight: random() < 0.5 ? Infinity : 600,
  maxItemWeight: random() < 0.5 ? Infinity : 500,
  refuseLate: random() < 0.5 ? 1 : undefined,
  timeoutMs: random() < 0.5 ? 150 : undefined,
  concurrency: random() < 0.5 ? 1 : 4,
});

const optionsByName = {
  plain: {},
  window: { policy: () => fixedWindow(), maxWaitMs: 5 },
  "weights and groups": {
    weigh: ({ id }) => 1 + (id % 9),
    maxBatchWeight: 60,
    batchWeight: "padded",
    groupKey: ({ id }) => `tenant ${id % 5_000}`,
    policy: () => greedy(),
  },
  "weights that explain run times": weightOptions,
  "weights and order": (random) => ({ ...weightOptions(random), orderKey: ({ id }) => id % 97 }),
  order: { orderKey: ({ id }) => id % 97, onBatchError: "bisect" },
  dedupe: { dedupeKey: ({ id }) => id % 50, timeoutMs: 200 },
  tenants: (random) => ({
    fairKey: ({ id }) => (id % 11 === 0 ? undefined : id % 7),
    shareOf: (key) => (key === 3 ? 4 : 1),
    dedupeKey: random() < 0.5 ? ({ id }) => id % 50 : undefined,
    groupKey: random() < 0.5 ? ({ id }) => id % 3 : undefined,
    onQueueFull: random() < 0.5 ? "wait" : "reject",
    maxQueueSize: 40,
    timeoutMs: 300,
  }),
  "small queue": { maxQueueSize: 20, onQueueFull: "wait", runTimeoutMs: 60 },
  "rate limit": { rateLimit: { items: 400, perMs: 100 }, timeoutMs: 300, maxQueueSize: 500 },
};

/**
 * Ten batchers with every feature in use, and random calls and lists to them. `begun(items)` gives the function that
 * is told the one outcome of a call: ok, error, timeout, aborted, refused or wrong, and in words what is wrong.
 */
export function mixedCalls({ random, clock, begun }) {
  const batchers = Object.entries(optionsByName).map(([name, given]) => {
    const { policy, ...options } = typeof given === "function" ? given(random) : given;
    return createBatcher(runOf(name, options, random), {
      name,
      maxBatchSize: 16,
      clock,
      policy: policy?.(),
      ...options,
    });
  });

  /** One call or list. */
  const make = () => {
    const batcher = batchers[Math.floor(random() * batchers.length)];
    const options = callOptions(random);
    const kind = random();
    if (kind < 0.94) watch([newItem()], (items) => batcher(items[0], options).then((result) => [result]));
    else if (kind < 0.97) watch(newItems(60), (items) => batcher.many(items, options));
    else watch(newItems(60), (items) => collectAll(batcher.map(items, options)));
  };

  const watch = (items, call) => {
    const ended = begun(items);
    call(items).then(
      (results) => {
        const isOwn = results.every((result, index) => result === resultOf(items[index]));
        ended(isOwn && results.length === items.length ? "ok" : "wrong", "another's result");
      },
      (error) => ended(outcomeOf(error), String(error?.stack ?? error)),
    );
  };

  const newItem = () => ({ id: Math.floor(random() * 1e6) });
  const newItems = (most) => Array.from({ length: Math.ceil(random() * most) }, newItem);
  return { batchers, make };
}

function outcomeOf(error) {
  if (error === abortReason) return "aborted";
  if (error === runError || error?.message === "this item is bad") return "error";
  if (!(error instanceof BatcherError)) return "wrong";
  if (error.code === "TIMEOUT") return "timeout";
  if (error.code === "QUEUE_FULL" || error.code === "ITEM_TOO_LARGE") return "refused";
  return error.code === "RUN_TIMEOUT" ? "error" : "wrong";
}

function callOptions(random) {
  const which = random();
  if (which < 0.5) return undefined;
  if (which < 0.6) return { priority: "bulk" };
  if (which < 0.65) return { priority: "immediate" };
  if (which < 0.8) return { timeoutMs: 5 + Math.floor(random() * 200) };
  const controller = new AbortController();
  if (random() < 0.5) setTimeout(() => controller.abort(abortReason), random() * 30);
  return { signal: controller.signal };
}

function runOf(name, { weigh, batchWeight }, random) {
  return async (items, { signal }) => {
    const weights = name.startsWith("weights") ? items.map(weigh) : [];
    const sum = batchWeight === "padded" ? items.length * Math.max(0, ...weights) : weights.reduce((a, b) => a + b, 0);
    await sleep(1 + random() * 6 + sum / 100);
    if (name === "small queue" && random() < 0.01) await Promise.race([sleep(200), aborted(signal)]);
    if (name === "order" ? items.some(({ id }) => id % 211 === 0) : random() < 0.005) throw runError;
    return items.map((item) => (random() < 0.002 ? new Error("this item is bad") : resultOf(item)));
  };
}

function aborted(signal) {
  return new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
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

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
