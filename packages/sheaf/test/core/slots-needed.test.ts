import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher, type BatcherOptions } from "../../dist/index.js";
import type { SlotsNeeded } from "../../dist/core/contract/stats.js";
import { virtualClock } from "../../dist/testing/index.js";
import { seededRandom } from "../../dist/internal/tuning.js";

/** A part of the load: calls a second for so long. */
type Part = readonly [perS: number, forMs: number];

/** What the batcher says after each part. Batches take 50 + 5 n ms; four slots. */
async function needed(
  parts: readonly Part[],
  options: BatcherOptions<number, number> = {},
  timeoutOf: (call: number) => number | undefined = () => 500,
): Promise<(SlotsNeeded | null)[]> {
  const clock = virtualClock();
  const run = async (items: number[]): Promise<number[]> => {
    await clock.sleep(50 + 5 * items.length);
    return items;
  };
  const batcher = createBatcher<number, number>(run, { clock, concurrency: 4, ...options });
  const random = seededRandom(3);
  const said: (SlotsNeeded | null)[] = [];
  let startMs = 0;
  let call = 0;
  for (const [perS, forMs] of parts) {
    const endMs = startMs + forMs;
    const next = (atMs: number): void => {
      if (atMs >= endMs) return;
      clock.at(atMs, () => {
        void batcher(call, { timeoutMs: timeoutOf(call++) }).catch(() => undefined);
        next(atMs - (1000 * Math.log(1 - random())) / perS);
      });
    };
    next(startMs);
    clock.at(endMs, () => said.push(batcher.stats().slotsNeeded));
    startMs = endMs;
  }
  await clock.idle();
  return said;
}

/** Items a second of one slot at best: runs of at most 500 ms ÷ (1 + 1 / W), in batches of at most 32. */
const perSlot = (slots: number): number => {
  const runMs = Math.min(500 / (1 + 1 / slots), 50 + 5 * 32);
  return (1000 * ((runMs - 50) / 5)) / runMs;
};

test("the slots needed serve the load with a fifth to spare, and one fewer would not", async () => {
  const [, said] = await needed([
    [200, 20_000],
    [400, 60_000],
  ]);
  assert.ok(said !== null && said !== undefined);
  assert.ok(Math.abs(said.arrivedPerS - 400) < 60, `${said.arrivedPerS} a second`);
  assert.equal(said.withinMs, 500);
  const served = (slots: number): number => 0.8 * slots * perSlot(slots);
  assert.ok(
    served(said.slots) >= 0.97 * said.arrivedPerS && served(said.slots - 1) < said.arrivedPerS * 1.03,
    JSON.stringify(said),
  );
  assert.ok(said.low <= said.slots && said.slots <= said.high, JSON.stringify(said));
});

test("nothing is said before there are arrivals and batches to go by, nor where calls have no deadline", async () => {
  const [soon, later] = await needed([
    [100, 3000],
    [100, 10_000],
  ]);
  assert.equal(soon, null);
  assert.notEqual(later, null);
  assert.deepEqual(await needed([[100, 30_000]], {}, () => undefined), [null]);
});

test("nothing is said where one item alone takes longer than its deadline", async () => {
  assert.deepEqual(await needed([[100, 30_000]], {}, () => 40), [null]);
});

test("a burst counts for a minute, and no longer", async () => {
  const [before, during, after, later] = await needed([
    [100, 60_000],
    [600, 10_000],
    [100, 40_000],
    [100, 30_000],
  ]);
  assert.ok(during!.slots > 2 * before!.slots, JSON.stringify([before, during]));
  assert.equal(after!.slots, during!.slots);
  assert.ok(after!.low < after!.slots);
  assert.ok(later!.slots <= before!.slots + 1, JSON.stringify([before, later]));
});

test("calls that are refused count as arrivals", async () => {
  const [said] = await needed([[1500, 30_000]], { maxQueueSize: 64 });
  assert.ok(said!.arrivedPerS > 1300, JSON.stringify(said));
  assert.ok(said!.slots > 8, JSON.stringify(said));
});

test("the deadline is that of the calls who want their results soonest", async () => {
  const [half] = await needed([[200, 30_000]], {}, (call) => (call % 2 === 0 ? 500 : 30_000));
  assert.ok(half!.withinMs < 700, JSON.stringify(half));
  const [one] = await needed([[200, 30_000]], {}, (call) => (call === 1000 ? 100 : 500));
  assert.ok(one!.withinMs > 450 && one!.withinMs <= 505, JSON.stringify(one));
});

test("batches of one size say nothing of larger ones", async () => {
  const [said] = await needed([[6, 60_000]]);
  // Items that run one by one take 55 ms each.
  assert.equal(said!.slots, 1);
  const [full] = await needed([[50, 60_000]], { maxBatchSize: 1, concurrency: 8 });
  const utilisation = (full!.arrivedPerS * 55) / 1000;
  assert.ok(full!.slots >= utilisation / 0.8 && full!.slots <= utilisation / 0.8 + 1.01, JSON.stringify(full));
});
