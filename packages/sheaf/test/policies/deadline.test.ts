import assert from "node:assert/strict";
import { test } from "node:test";
import { auto, createBatcher, greedy, type Policy } from "../../dist/index.js";
import { eagerLateShare } from "../../dist/policies/auto/eager.js";
import type { CostModel } from "../../dist/policies/cost-model.js";
import { virtualClock } from "../../dist/testing/index.js";
import { simulate, type SimulationResult } from "../../dist/tuning/index.js";
import { seededRandom } from "../../dist/internal/tuning.js";
import { inProof } from "../support/seeds.js";
import { heldBatcher } from "../support/rig.js";

const cost = { fixedMs: 60, perItemMs: 0.5 };
const slots = 8;
const sloMs = 200;
/** Slots that start one after the other serve so many items a second within 200 ms, in batches of 235. */
const ceilingPerS = (1000 * slots * 235) / (60 + 0.5 * 235);

/** Queue waits of calls that come alone, a minute apart, after a spell of traffic that has taught the policy. */
async function loneWaits(concurrency: number, timeoutMs: number | undefined): Promise<number[]> {
  const clock = virtualClock();
  const run = async (items: number[]): Promise<number[]> => {
    await clock.sleep(40 + 0.5 * items.length);
    return items;
  };
  const batcher = createBatcher<number, number>(run, { clock, concurrency });
  const random = seededRandom(7);
  for (let i = 0, atMs = 0; i < 2000; i++)
    clock.at((atMs += -Math.log(1 - random()) * 4), () => void batcher(i).catch(() => undefined));
  await clock.idle();
  const waits: number[] = [];
  for (let minute = 1; minute <= 5; minute++)
    clock.at(clock.now() + 60_000 * minute, () => {
      void batcher.detailed(minute, { timeoutMs }).then(({ queueMs }) => waits.push(queueMs));
    });
  await clock.idle();
  return waits;
}

for (const concurrency of [1, 8])
  for (const timeoutMs of [100, 1000, 30_000])
    test(`a lone call with ${timeoutMs} ms and ${concurrency} slots waits no longer than one without a deadline`, async () => {
      const waits = await loneWaits(concurrency, timeoutMs);
      const before = await loneWaits(concurrency, undefined);
      assert.equal(waits.length, 5);
      waits.forEach((waitMs, i) => assert.ok(Math.abs(waitMs - before[i]!) < 1, `${waitMs} ms, not ${before[i]} ms`));
    });

const rampMs = inProof(8000, 3000);
const manyItems = inProof(80_000, 20_000);

/** From few calls on, so that the cost is known before they are many. */
const served = (load: number, options: { policy?: Policy; timeoutMs?: number }): Promise<SimulationResult> =>
  simulate({
    arrivals: { pattern: "ramp", fromPerS: 100, toPerS: load * ceilingPerS, durationMs: rampMs },
    cost,
    concurrency: slots,
    maxBatchSize: 256,
    maxQueueSize: Infinity,
    items: manyItems,
    ...options,
  });

test("batches of any size at a rate that no slot serves are late, and looked at in bounded time", () => {
  const load = { perMs: 1, slots: 2, maxBatchSize: Infinity, withinMs: 100 };
  for (const at of [
    // Learned from few sizes: large batches seem to take longer than their items take to come.
    (size: number): number => (size < 10 ? 5 : size < 1000 ? 20 * size : 20_000 + 30 * size),
    (size: number): number => 10 + 3 * size,
  ]) {
    const cost = { noise: 0.1, at, fixedMs: at(1), perItemMs: 0 };
    assert.equal(eagerLateShare(cost as CostModel, load), 1);
    assert.equal(eagerLateShare({ ...cost, perItemMs: 3 } as CostModel, load), 1);
  }
});

test("at a rate that eager dispatch serves in time, a deadline changes no batch", async () => {
  const eager = await served(0.25, { policy: greedy() });
  assert.ok(eager.latencyMs.p99 <= sloMs, `${eager.latencyMs.p99} ms`);
  const without = await served(0.25, {});
  const told = await served(0.25, { timeoutMs: sloMs });
  assert.equal(told.items.ok, manyItems);
  assert.deepEqual(told.batchSizes, without.batchSizes);
  assert.deepEqual(told.latencyMs, without.latencyMs);
});

test("at a rate that it does not serve in time, a deadline is the budget: 99 % are answered in time", async () => {
  const eager = await served(0.9, { policy: greedy() });
  assert.ok(eager.latencyMs.p99 > sloMs, JSON.stringify(eager.latencyMs));
  const { items } = await served(0.9, { timeoutMs: sloMs });
  assert.ok(items.ok >= 0.99 * manyItems, JSON.stringify(items));
});

test("a budget goes before the deadline", async () => {
  const told = await served(0.9, { policy: auto({ latencyBudgetMs: 150 }), timeoutMs: sloMs });
  const without = await served(0.9, { timeoutMs: sloMs });
  assert.ok(told.latencyMs.mean < without.latencyMs.mean, `${told.latencyMs.mean} and ${without.latencyMs.mean} ms`);
});

/** A policy that holds, and the deadlines that it was shown. */
function holding(): { policy: Policy; seen: number[] } {
  const seen: number[] = [];
  const decide: Policy["decide"] = ({ deadlineAtMs }) => {
    seen.push(deadlineAtMs);
    return "wait";
  };
  return { policy: { name: "holding", decide }, seen };
}

test("a policy sees the first deadline of the waiting items, also after some of them have gone", async () => {
  const { policy, seen } = holding();
  const { batcher, clock, runs } = heldBatcher({ policy, maxBatchSize: 2, timeoutMs: 1000 });
  void batcher(1).catch(() => undefined);
  await clock.advanceAsync(10);
  assert.equal(seen.at(-1), 1000);
  void batcher(2).catch(() => undefined);
  await clock.advanceAsync(10);
  void batcher(3).catch(() => undefined);
  await clock.advanceAsync(10);
  void batcher.flush();
  await clock.settle();
  assert.deepEqual(runs[0]!.items, [1, 2]);
  const last = batcher(4).catch(() => undefined);
  await runs[0]!.finish();
  await runs[1]!.finish();
  assert.deepEqual(runs[1]!.items, [3, 4]);
  await last;
  void batcher(5, { timeoutMs: 300 }).catch(() => undefined);
  await clock.advanceAsync(10);
  assert.equal(seen.at(-1), 330);
});

test("without a deadline a policy sees none, and the earliest where they are out of order", async () => {
  const { policy, seen } = holding();
  const { batcher, clock } = heldBatcher({ policy });
  void batcher(1).catch(() => undefined);
  await clock.advanceAsync(10);
  assert.equal(seen.at(-1), Infinity);
  void batcher(2, { timeoutMs: 500 }).catch(() => undefined);
  void batcher(3, { timeoutMs: 100 }).catch(() => undefined);
  await clock.advanceAsync(10);
  assert.equal(seen.at(-1), 110);
});
