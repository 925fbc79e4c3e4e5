import assert from "node:assert/strict";
import { test } from "node:test";
import {
  adaptive,
  auto,
  type BatcherOptions,
  type CallOptions,
  createBatcher,
  greedy,
  type Policy,
  fixedWindow,
} from "../dist/index.js";
import { pipeline, workerThread } from "../dist/node/index.js";
import { manualClock } from "../dist/testing/index.js";
import { calibrate, recommend } from "../dist/tuning/index.js";
import { numbers } from "./support/rig.js";

const tiny = Number.MIN_VALUE;
const huge = Number.MAX_VALUE;

/** The right values at the ends of each option's range; none may hang a call, lose one, or answer it with another's. */
const edges: Record<string, readonly Partial<BatcherOptions<number, number>>[]> = {
  maxBatchSize: [{ maxBatchSize: 1 }, { maxBatchSize: 2 ** 53 - 1 }, { maxBatchSize: Infinity }],
  maxWaitMs: [{ maxWaitMs: 0 }, { maxWaitMs: tiny }, { maxWaitMs: huge }, { maxWaitMs: Infinity }],
  concurrency: [{ concurrency: 1 }, { concurrency: 10_000 }, { concurrency: Infinity }],
  maxQueueSize: [
    { maxQueueSize: 1, onQueueFull: "wait" },
    { maxQueueSize: Infinity },
    { maxQueueSize: "auto", timeoutMs: 1e6 },
  ],
  maxBatchWeight: [
    { weigh: () => 0, maxBatchWeight: tiny },
    { weigh: () => 1, maxBatchWeight: 1 },
    { weigh: () => huge, maxBatchWeight: huge },
    { weigh: () => 5, maxBatchWeight: Infinity, batchWeight: "padded" },
    { weigh: () => 3, maxBatchWeight: 3, batchWeight: "padded" },
  ],
  timeoutMs: [{ timeoutMs: huge }, { timeoutMs: Infinity }, { timeoutMs: 2 ** 31 }],
  runTimeoutMs: [{ runTimeoutMs: huge }, { runTimeoutMs: Infinity }, { runTimeoutMs: 2 ** 31 }],
  bisect: [
    { onBatchError: "bisect", maxBisectRuns: 0 },
    { onBatchError: "bisect", maxBisectRuns: 2 ** 53 - 1 },
  ],
  keys: [
    { groupKey: () => Number.NaN },
    { groupKey: () => "__proto__" },
    { groupKey: (item) => item },
    { fairKey: () => Number.NaN },
    { fairKey: () => "__proto__", shareOf: () => tiny },
    { fairKey: (item) => item, shareOf: () => huge },
    { orderKey: () => Number.NaN },
    { orderKey: () => "constructor" },
    { dedupeKey: () => undefined },
    { dedupeKey: (item) => (item === 0 ? "__proto__" : item) },
  ],
  rateLimit: [
    { rateLimit: { runs: 1, perMs: 1 } },
    {
      rateLimit: [
        { runs: 1, perMs: tiny },
        { items: 1, perMs: 1 },
      ],
    },
    { rateLimit: { items: 1, perMs: tiny } },
    { rateLimit: { items: 2 ** 53 - 1, perMs: huge } },
    { weigh: () => 7, rateLimit: { weight: 1e-6, perMs: 1e-9 } },
    { weigh: () => 0, rateLimit: { weight: 1, perMs: 1 } },
  ],
  price: [{ price: {} }, { price: { perRun: 0, perItem: huge, perWeight: tiny } }],
  name: [{ name: "\u202E\u0000 𝒞 __proto__" }],
};
const policies: Record<string, () => Policy> = {
  greedy,
  auto,
  "auto with a budget of 1 ns": () => auto({ latencyBudgetMs: 1e-6 }),
  "auto with an endless budget": () => auto({ latencyBudgetMs: 1e15 }),
  adaptive,
  "adaptive at its least": () => adaptive({ targetLatencyMs: tiny, hysteresis: 1 }),
  "adaptive at its most": () => adaptive({ targetLatencyMs: huge, hysteresis: 2 ** 53 - 1 }),
  fixedWindow,
  "window by size": () => fixedWindow({ trigger: "size" }),
  "window by time": () => fixedWindow({ trigger: "time" }),
};

for (const [option, values] of Object.entries(edges)) {
  for (const value of values) {
    test(`${shown(value)}: every call has its own result, under every policy`, async () => {
      for (const [name, policyOf] of Object.entries(policies)) {
        const policy = policyOf();
        if (policy.needsMaxWaitMs === true && option === "maxWaitMs" && value.maxWaitMs === Infinity) continue;
        const needed = policy.needsMaxWaitMs === true ? { maxWaitMs: 1 } : {};
        await answered({ ...needed, ...value, policy }, `${name}, ${shown(value)}`);
      }
    });
  }
}

/**
 * 100 single calls, a list and a map, in bursts; a hundred thousand seconds go by, and a flush for what holds forever.
 */
async function answered(options: BatcherOptions<number, number>, what: string): Promise<void> {
  const clock = manualClock();
  const batcher = createBatcher<number, number>(
    async (items) => {
      await new Promise<void>((resolve) => clock.after(1, resolve));
      return items.map((item) => item * 2);
    },
    { clock, ...options },
  );
  const calls: Promise<unknown>[] = [];
  const outcomes: unknown[] = [];
  const ask = (call: Promise<unknown>): void => {
    const place = calls.push(call) - 1;
    call.then(
      (value) => (outcomes[place] = value),
      (error: unknown) => (outcomes[place] = error),
    );
  };
  // "wait" has room for maxQueueSize waiting callers and no more.
  const burst = options.maxQueueSize === 1 ? 1 : 20;
  for (let turn = 0; turn < 100 / burst; turn++) {
    for (const item of numbers(burst)) ask(batcher(item));
    await clock.advanceAsync(3);
  }
  ask(batcher.many(numbers(40)));
  await clock.advanceAsync(50);
  const mapped: number[] = [];
  ask(
    (async () => {
      for await (const value of batcher.map(numbers(40))) mapped.push(value);
      return mapped;
    })(),
  );
  for (let turn = 0; turn < 100 && Object.keys(outcomes).length < calls.length; turn++) {
    await clock.advanceAsync(1000);
    void batcher.flush();
  }
  const doubled = (count: number): number[] => numbers(count).map((item) => item * 2);
  const expected = [...numbers(100).map((i) => 2 * (i % burst)), doubled(40), doubled(40)];
  assert.deepEqual(outcomes, expected, what);
  const stats = batcher.stats();
  assert.ok(stats.items.ok >= 180 && stats.queued === 0 && stats.inFlight === 0, what);
  for (const [name, value] of Object.entries(stats)) {
    if (typeof value === "number") assert.ok(Number.isFinite(value), `${what}: ${name} is ${value}`);
  }
  await batcher.close();
}

for (const callOptions of [
  { timeoutMs: huge },
  { timeoutMs: Infinity },
  { timeoutMs: undefined, signal: undefined, priority: undefined },
  { priority: "immediate" },
  { priority: "bulk" },
] satisfies CallOptions[]) {
  test(`a call, a list and a map with ${shown(callOptions)} are answered`, async () => {
    const batcher = createBatcher<number, number>(async (items) => items);
    assert.equal(await batcher(1, callOptions), 1);
    assert.deepEqual(await batcher.many([1, 2], callOptions), [1, 2]);
    assert.deepEqual(
      (await batcher.settle([1, 2], callOptions)).map(({ status }) => status),
      ["fulfilled", "fulfilled"],
    );
    const mapped: number[] = [];
    for await (const value of batcher.map([1, 2], callOptions)) mapped.push(value);
    assert.deepEqual(mapped, [1, 2]);
    await batcher.close({ graceMs: 0 });
  });
}

const moduleUrl = new URL("data:text/javascript,export default { run: (items) => items }");
const echo = (items: number[]): number[] => items;
const cost = { fixedMs: 10, perItemMs: 1 };
for (const [wrong, message] of [
  [() => workerThread(moduleUrl, { instances: 0 }), /^instances must be an integer >= 1, got 0/],
  [() => workerThread(moduleUrl, { instances: Infinity }), /^instances must be .*got Infinity/],
  [() => workerThread(moduleUrl, { prefetch: 2 as 1 }), /^prefetch must be 0 or 1, got 2/],
  [() => workerThread(moduleUrl, { recycleAfterBatches: 0 }), /^recycleAfterBatches must be .*got 0/],
  [() => workerThread(moduleUrl, { maxMemoryMb: 0 }), /^maxMemoryMb must be .*got 0/],
  [() => workerThread(moduleUrl, { heapLimitMb: Infinity }), /^heapLimitMb must be .*got Infinity/],
  [() => workerThread(moduleUrl, { niceness: 20 }), /^niceness must be an integer from 0 to 19, got 20/],
  [() => workerThread(moduleUrl, { encodeRows: "constructor" } as never), /encodeRows.*got "constructor"/],
  [() => workerThread(moduleUrl, { resultRows: "constructor" as "own" }), /^resultRows must be .*got "constructor"/],
  [() => workerThread(moduleUrl, { closeTimeoutMs: 0 }), /^closeTimeoutMs must be .*got 0/],
  [() => workerThread("./model.js"), /new URL\("\.\/model\.js", import\.meta\.url\)/],
  [() => pipeline({ executor: echo, maxInFlight: 0 }), /^maxInFlight must be an integer >= 1, got 0/],
  [() => pipeline({ executor: echo, maxInFlight: Number.NaN }), /^maxInFlight must be .*got NaN/],
  [() => fixedWindow({ trigger: "constructor" as "size" }), /^trigger must be .*got "constructor"/],
  [() => auto({ latencyBudgetMs: 0 }), /^latencyBudgetMs must be a number of milliseconds > 0, got 0/],
  [() => adaptive({ targetLatencyMs: Infinity }), /^targetLatencyMs must be a number of milliseconds > 0, got Inf/],
  [() => adaptive({ hysteresis: 0.5 }), /^hysteresis must be an integer >= 1, got 0.5/],
  [() => recommend(cost, { ratePerS: 0 }), /^ratePerS must be a number > 0, got 0/],
  [
    () => recommend(cost, { ratePerS: 1, latencyBudgetMs: Number.NaN }),
    /^latencyBudgetMs must be a number > 0, got NaN/,
  ],
  [() => recommend(cost, { ratePerS: 1, slots: 1.5 }), /^slots must be an integer >= 1, got 1\.5/],
  [() => recommend(cost, { ratePerS: 1, order: "any" as never }), /^order must be "free" or "strict", got "any"/],
  [() => recommend(cost, { ratePerS: 1, slot: 2 } as never), /^unknown option slot; did you mean slots\?/],
  [() => recommend({ fixedMs: 0, perItemMs: 0 }, { ratePerS: 1 }), /not both 0/],
] as const) {
  test(`a wrong value is refused at once, with what it got: ${message.source}`, () => {
    assert.throws(wrong, (error: unknown) => error instanceof RangeError || error instanceof TypeError);
    assert.throws(wrong, { message });
  });
}

test("calibrate refuses no sizes, invalid sizes, and no sample", async () => {
  const run = async (items: number[]): Promise<number[]> => items;
  for (const sizes of [[], [0], [1.5], [Number.NaN], ["4"]]) {
    await assert.rejects(
      async () => calibrate(run, { sizes: sizes as number[], sample: () => 1 }),
      /sizes/,
      String(sizes),
    );
  }
  await assert.rejects(async () => calibrate(run, { sizes: [1, 2], sample: 5 as never }), /sample/);
});

function shown(value: object): string {
  return Object.entries(value)
    .map(
      ([name, part]) =>
        `${name}: ${typeof part === "function" ? part.toString() : typeof part === "object" ? JSON.stringify(part) : String(part)}`,
    )
    .join(", ");
}
