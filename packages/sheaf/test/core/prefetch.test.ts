import assert from "node:assert/strict";
import { test } from "node:test";
import { auto, createBatcher, greedy, type Executor, type Policy } from "../../dist/index.js";
import { virtualClock, type VirtualClock } from "../../dist/testing/index.js";

/** Runs one batch after the other, 10 ms each, and takes 2 ms to wake up for one that it has not been given ahead. */
const executor = (
  clock: VirtualClock,
  prefetch: 0 | 1,
  sizes: number[],
  inFlight: { most: number },
): Executor<number, number> => {
  let holding = 0;
  let freeAtMs = 0;
  return {
    slots: 1,
    prefetch,
    ready: () => Promise.resolve(),
    run: async (items, context) => {
      inFlight.most = Math.max(inFlight.most, ++holding);
      sizes.push(items.length);
      const startsAtMs = Math.max(clock.now() + 2, freeAtMs);
      freeAtMs = startsAtMs + 10;
      context.measured(10);
      await new Promise<void>((resolve) => void clock.at(startsAtMs + 10, resolve));
      holding--;
      return items;
    },
    close: () => Promise.resolve(),
  };
};

const drained = async (prefetch: 0 | 1, policy: Policy, calls: number, concurrency?: number) => {
  const clock = virtualClock();
  const sizes: number[] = [];
  const inFlight = { most: 0 };
  const batcher = createBatcher(executor(clock, prefetch, sizes, inFlight), {
    clock,
    policy,
    maxBatchSize: 8,
    concurrency,
  });
  await batcher.ready();
  const results = await Promise.all(Array.from({ length: calls }, (_, i) => batcher(i)));
  assert.deepEqual(
    results,
    Array.from({ length: calls }, (_, i) => i),
  );
  return { sizes, most: inFlight.most, endMs: clock.now() };
};

for (const policy of [greedy, auto]) {
  test(`${policy.name}: full batches are handed over ahead, which hides the wake-up; never more than one a slot`, async () => {
    const late = await drained(0, policy(), 80);
    const early = await drained(1, policy(), 80);
    assert.deepEqual([late.most, early.most], [1, 2]);
    assert.deepEqual(early.sizes, late.sizes);
    assert.ok(Math.abs(late.endMs - 120) < 0.1 && Math.abs(early.endMs - 102) < 0.1, `${late.endMs}, ${early.endMs}`);
  });
}

test("a partial batch is bound late: it fills until the slot is free", async () => {
  const { sizes, endMs } = await drained(1, greedy(), 12);
  assert.deepEqual(sizes, [8, 4]);
  assert.ok(Math.abs(endMs - 24) < 0.1, String(endMs));
});

test("a concurrency that the caller set is a cap: nothing goes ahead of it", async () => {
  assert.equal((await drained(1, greedy(), 80, 1)).most, 1);
});

test("a policy's aheadSize lets smaller batches go ahead, and no smaller ones than that", async () => {
  const inThrees: Policy = {
    name: "in threes",
    aheadSize: 3,
    decide: ({ waiting }) => ({ run: Math.min(3, waiting) }),
  };
  const { sizes, most, endMs } = await drained(1, inThrees, 8);
  assert.deepEqual([sizes, most], [[3, 3, 2], 2]);
  // Two wake-ups: of the first batch, and of the last, which was too small to go ahead.
  assert.ok(Math.abs(endMs - 34) < 0.1, String(endMs));
});

test("a batch that the policy keeps small goes ahead too, as long as a full one waits", async () => {
  const inThrees: Policy = { name: "in threes", decide: ({ waiting }) => ({ run: Math.min(3, waiting) }) };
  const { sizes, most, endMs } = await drained(1, inThrees, 24);
  assert.deepEqual([sizes, most], [Array.from({ length: 8 }, () => 3), 2]);
  // Three wake-ups: of the first batch, and of the last two, for which fewer than eight items waited.
  assert.ok(Math.abs(endMs - 86) < 0.1, String(endMs));
});

test("with tenants a batch goes ahead only shortly before its slot is free: a newcomer waits for no further run", async () => {
  const clock = virtualClock();
  let before = Promise.resolve();
  const slow: Executor<string, string> = {
    slots: 1,
    prefetch: 1,
    reportsStart: true,
    ready: () => Promise.resolve(),
    run: (items, handle) => {
      const ran = before.then(async () => {
        handle.started();
        handle.measured(100);
        await clock.sleep(100);
        return items;
      });
      before = ran.then(() => undefined);
      return ran;
    },
    close: () => Promise.resolve(),
  };
  const fairKey = (item: string): string => item[0]!;
  const batcher = createBatcher(slow, { clock, policy: greedy(), maxBatchSize: 4, fairKey });
  await batcher.ready();
  const flood = Promise.all(Array.from({ length: 80 }, (_, i) => batcher(`f${i}`)));
  for (const calledAtMs of [850, 1230]) {
    await clock.sleep(calledAtMs - clock.now());
    await batcher("newcomer");
    // The rest of a run, and its own.
    const waitedMs = clock.now() - calledAtMs;
    assert.ok(waitedMs < 200, `${waitedMs} ms`);
  }
  await flood;
  // 21 batches; the slot has never been idle.
  assert.ok(clock.now() < 2110, `${clock.now()} ms`);
});
