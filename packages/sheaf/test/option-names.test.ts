import assert from "node:assert/strict";
import { test } from "node:test";
import { qdrantStore } from "../dist/adapters/vector-store/index.js";
import { describe } from "../dist/internal/index.js";
import { adaptive, auto, createBatcher, fixedWindow, greedy } from "../dist/index.js";
import { pipeline, workerThread } from "../dist/node/index.js";

const run = (items: number[]): number[] => items;
const made = (options: object): unknown => createBatcher(run, options);

for (const [given, meant] of [
  ["maxBatchsize", "maxBatchSize"],
  ["batchSize", "maxBatchSize"],
  ["maxBatch", "maxBatchSize"],
  ["maxWait", "maxWaitMs"],
  ["timeout", "timeoutMs"],
  ["dedupkey", "dedupeKey"],
  ["concurency", "concurrency"],
] as const) {
  test(`the unknown option ${given} is refused with the one that was meant, ${meant}`, () => {
    const message = `unknown option ${given}; did you mean ${meant}?`;
    assert.throws(() => made({ [given]: 1 }), new TypeError(message));
  });
}

test("an option that resembles none is refused with a list of all", () => {
  for (const name of ["colour", "", "x".repeat(1_000_000), "__proto__x", "constructor"]) {
    assert.throws(() => made({ [name]: 1 }), {
      name: "TypeError",
      message: /^unknown option .*; there are maxBatch/s,
    });
  }
});

test("an option of an option, of workers, of a pipeline and of an adapter is checked by the same rule", () => {
  const url = new URL("./none.js", import.meta.url);
  assert.throws(
    () => made({ rateLimit: { run: 1, perMs: 1 } }),
    /unknown option rateLimit\.run; did you mean .*runs\?/,
  );
  assert.throws(() => made({ price: { perRun: -1 } }), /price\.perRun must be a number >= 0, got -1/);
  assert.throws(() => workerThread(url, { instance: 2 } as never), /unknown option instance; did you mean instances\?/);
  assert.throws(() => pipeline({ executor: run, befor: run } as never), /unknown option befor; did you mean before\?/);
  assert.throws(
    () =>
      qdrantStore({ upsert: run, queryBatch: run } as never, { collection: "c", queries: { maxBatch: 1 } } as never),
    /queries\.maxBatch; did you mean queries\.maxBatchSize\?/,
  );
});

test("a policy refuses what it does not take, with the option that was meant", () => {
  for (const [make, message] of [
    [() => auto({ latencyBudget: 5 } as object), /^unknown option latencyBudget; did you mean latencyBudgetMs\?$/],
    [() => auto(5 as never), /^options must be an object, got 5$/],
    [() => adaptive({ targetLatency: 5 } as object), /^unknown option targetLatency; did you mean targetLatencyMs\?$/],
    [() => fixedWindow({ wait: 5 } as object), /^unknown option wait; there is only trigger$/],
    [() => greedy({ x: 1 } as never), /^unknown option x; there are none$/],
  ] as const) {
    assert.throws(make, { name: "TypeError", message });
  }
});

test("close and drain refuse what they do not take, and go on taking calls", async () => {
  const batcher = createBatcher(run);
  const close = batcher.close as (options: object) => Promise<void>;
  const drain = batcher.drain as (options: object) => Promise<void>;
  await assert.rejects(close({ timeoutMs: 5 }), /^TypeError: unknown option timeoutMs; there is only graceMs$/);
  await assert.rejects(close(5 as never), /^TypeError: options must be an object, got 5$/);
  await assert.rejects(drain({ timeoutMs: 5 }), /^TypeError: unknown option timeoutMs; there are none$/);
  assert.equal(await batcher(1), 1);
});

test("what was got is shown briefly, as it would be written in the source", () => {
  for (const [value, words] of [
    ["32", '"32"'],
    [32, "32"],
    [null, "null"],
    [undefined, "undefined"],
    [{}, "an object"],
    [Object.create(null), "an object"],
    [new Map(), "an object (Map)"],
    [(function* () {})(), "an object (Generator)"],
    [[1, 2], "an array of 2"],
    [run, "a function"],
    [Symbol("s"), "Symbol(s)"],
    ["x".repeat(100), `"${"x".repeat(60)}…" (100 characters)`],
  ] as const) {
    assert.equal(describe(value), words);
  }
});
