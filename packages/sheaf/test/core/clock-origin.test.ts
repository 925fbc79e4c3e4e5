import assert from "node:assert/strict";
import { test } from "node:test";
import {
  adaptive,
  auto,
  type BatchRecord,
  type Clock,
  createBatcher,
  greedy,
  type Policy,
  fixedWindow,
} from "../../dist/index.js";
import { manualClock } from "../../dist/testing/index.js";
import { assertCode, numbers, statuses, values, watch, type Watched } from "../support/rig.js";

/** 40 lists of 5 under a rate limit and a timeout; what each batch was and when, from the clock's start. */
async function played(startAtMs: number, policy: Policy) {
  const clock = manualClock({ startAtMs });
  const batcher = createBatcher<number, number>(
    async (items) => {
      await new Promise<void>((resolve) => clock.after(7, resolve));
      return items;
    },
    {
      clock,
      policy,
      maxWaitMs: 20,
      maxBatchSize: 4,
      concurrency: 2,
      timeoutMs: 500,
      rateLimit: { items: 8, perMs: 50 },
    },
  );
  const batches: unknown[] = [];
  batcher.subscribe(({ startedAtMs, size, reason, runMs }: BatchRecord) =>
    batches.push([Math.round(startedAtMs - startAtMs), size, reason, Math.round(runMs)]),
  );
  for (let call = 0; call < 40; call++) {
    const outcomes = batcher.settle(numbers(5));
    await clock.advanceAsync(13);
    void outcomes;
  }
  await clock.advanceAsync(120_000);
  const { items, latencyMs } = batcher.stats();
  return { batches, items, latencyMs };
}

test("a clock may start at any moment, also before 0: batches and figures are the same", async () => {
  for (const policyOf of [greedy, fixedWindow, adaptive, auto]) {
    const expected = await played(0, policyOf());
    assert.ok(expected.batches.length > 10);
    for (const startAtMs of [-1_000_000, -333, 2 ** 40]) {
      assert.deepEqual(await played(startAtMs, policyOf()), expected, `${policyOf.name} from ${startAtMs}`);
    }
  }
});

for (const maxQueueSize of [1, 10]) {
  test(`a clock that calls the batcher loses no call, and a queue of ${maxQueueSize} keeps its bound`, async () => {
    const clock = manualClock();
    let isArmed = false;
    const inner: Watched<string>[] = [];
    const now = (): number => {
      if (isArmed) {
        isArmed = false;
        inner.push(watch(batcher("from the clock")));
      }
      return clock.now();
    };
    const reentrant: Clock = { now, after: (delayMs, callback) => clock.after(delayMs, callback) };
    const batcher = createBatcher((items: string[]) => items, { clock: reentrant, policy: greedy(), maxQueueSize });
    isArmed = true;
    const outer = watch(batcher("from outside"));
    await clock.advanceAsync(1);
    assert.deepEqual(values(inner), ["from the clock"]);
    if (maxQueueSize === 1) assertCode(outer, "QUEUE_FULL");
    else assert.equal(outer.value, "from outside");
  });
}

test("a clock that aborts calls while the others are cut off leaves none of them", async () => {
  const clock = manualClock();
  const controller = new AbortController();
  let isArmed = false;
  const now = (): number => {
    if (isArmed) controller.abort(new Error("left"));
    return clock.now();
  };
  const reentrant: Clock = { now, after: (delayMs, callback) => clock.after(delayMs, callback) };
  let runs = 0;
  const batcher = createBatcher(() => new Promise<never>(() => runs++), {
    clock: reentrant,
    policy: greedy(),
    maxBatchSize: 2,
    concurrency: 1,
  });
  const { signal } = controller;
  // A batch that runs and three that wait, each a chunk of the queue.
  const calls = Array.from({ length: 8 }, (_, i) => watch(batcher(i, i === 4 || i === 5 ? { signal } : {})));
  await clock.advanceAsync(1);
  void batcher.close({ graceMs: 10 });
  clock.after(9, () => (isArmed = true));
  await clock.advanceAsync(10);
  assert.deepEqual(statuses(calls), Array(8).fill("rejected"));
  assert.equal(runs, 1);
});
