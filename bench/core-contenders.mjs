/**
 * Who runs in `npm run bench -- core`: Sheaf, the two yardsticks written here, and the peers (loaded only in their own
 * child process, so that none is measured with another's code in memory).
 */
import { createBatcher, fixedWindow, greedy } from "../packages/sheaf/dist/index.js";

const echo = async (items) => items;
const roomForAll = { maxQueueSize: 1_000_000 };

export const libraries = ["floor", "window-class", "dataloader", "batshit", "promise-batcher", "pacer"];

/** The least a batcher can do: one array push and one Promise a call, all batches at the end of the turn. */
function floor(maxBatchSize) {
  let items = [];
  let resolvers = [];
  const run = async (batch, batchResolvers) => {
    const results = await echo(batch);
    for (let index = 0; index < results.length; index++) batchResolvers[index](results[index]);
  };
  const runAll = () => {
    const [allItems, allResolvers] = [items, resolvers];
    items = [];
    resolvers = [];
    for (let start = 0; start < allItems.length; start += maxBatchSize) {
      const end = start + maxBatchSize;
      void run(allItems.slice(start, end), allResolvers.slice(start, end));
    }
  };
  return (item) => {
    if (items.length === 0) setImmediate(runAll);
    items.push(item);
    return new Promise((resolve) => resolvers.push(resolve));
  };
}

/** What one writes by hand: flush at maxBatchSize or maxWaitMs after the first item, errors passed on. */
class SizeOrTimeWindow {
  #entries = [];
  #timer;
  constructor(run, maxBatchSize, maxWaitMs) {
    this.run = run;
    this.maxBatchSize = maxBatchSize;
    this.maxWaitMs = maxWaitMs;
  }
  add(item) {
    return new Promise((resolve, reject) => {
      this.#entries.push({ item, resolve, reject });
      if (this.#entries.length >= this.maxBatchSize) void this.#flush();
      else this.#timer ??= setTimeout(() => void this.#flush(), this.maxWaitMs);
    });
  }
  async #flush() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const entries = this.#entries;
    this.#entries = [];
    try {
      const results = await this.run(entries.map((entry) => entry.item));
      if (results.length !== entries.length) throw new Error(`${results.length} results for ${entries.length} items`);
      for (let index = 0; index < entries.length; index++) entries[index].resolve(results[index]);
    } catch (error) {
      for (const entry of entries) entry.reject(error);
    }
  }
}

const sheaf = (options, optionsOfCall) => (maxBatchSize) => {
  const batcher = createBatcher(echo, { maxBatchSize, policy: greedy(), ...roomForAll, ...options?.() });
  return optionsOfCall === undefined ? batcher : (item) => batcher(item, optionsOfCall(item));
};

const never = new AbortController().signal;

/** What a feature costs when it is used, each against the same batcher without it. */
export const features = {
  "one signal shared by all calls": sheaf(undefined, () => ({ signal: never })),
  "a signal of its own for every call": sheaf(undefined, () => ({ signal: new AbortController().signal })),
  "timeoutMs of the batcher": sheaf(() => ({ timeoutMs: 60_000 })),
  "timeoutMs of the call": sheaf(undefined, (item) => ({ timeoutMs: 60_000 + (item % 16) })),
  "every 2nd call bulk": sheaf(undefined, (item) => (item % 2 === 0 ? { priority: "bulk" } : undefined)),
  "weigh, sum": sheaf(() => ({ weigh: () => 1, maxBatchWeight: 1_000_000 })),
  "weigh, padded": sheaf(() => ({ weigh: () => 1, maxBatchWeight: 1_000_000, batchWeight: "padded" })),
  "groupKey, 8 groups": sheaf(() => ({ groupKey: (item) => item % 8 })),
  "orderKey, 1,000 keys": sheaf(() => ({ orderKey: (item) => item % 1_000 })),
  "dedupeKey, all different": sheaf(() => ({ dedupeKey: (item) => item })),
  "rateLimit, never reached": sheaf(() => ({ rateLimit: { items: 1e12, perMs: 1 } })),
  runTimeoutMs: sheaf(() => ({ runTimeoutMs: 60_000 })),
  'onQueueFull: "wait", never full': sheaf(() => ({ onQueueFull: "wait" })),
  'onBatchError: "bisect", no error': sheaf(() => ({ onBatchError: "bisect" })),
  cost: sheaf(() => ({ price: { perRun: 1, perItem: 1 } })),
  "fixedWindow() with maxWaitMs 1": sheaf(() => ({ policy: fixedWindow(), maxWaitMs: 1 })),
  "a subscriber": (maxBatchSize) => {
    const batcher = createBatcher(echo, { maxBatchSize, policy: greedy(), ...roomForAll });
    batcher.subscribe(() => {});
    return batcher;
  },
};

export async function contender(name) {
  if (name === "floor") return floor;
  if (name === "window-class") {
    return (maxBatchSize) => {
      const batches = new SizeOrTimeWindow(echo, maxBatchSize, 1);
      return (item) => batches.add(item);
    };
  }
  if (name === "sheaf greedy") return sheaf();
  if (name === "sheaf default") return sheaf(() => ({ policy: undefined }));
  if (name in features) return features[name];
  const { peers } = await import("./peers/libraries/contenders.mjs");
  if (name in peers) return peers[name];
  throw new RangeError(`No contender is called ${JSON.stringify(name)}`);
}
