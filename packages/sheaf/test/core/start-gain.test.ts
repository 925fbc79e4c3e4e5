import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher } from "../../dist/index.js";
import type { OpenCause, StartGain } from "../../dist/core/contract/stats.js";
import { virtualClock } from "../../dist/testing/index.js";
import { seededRandom } from "../../dist/internal/tuning.js";
import { gainAtStart } from "../../dist/internal/index.js";

/** Pairs of runs of 1 and 32 items whose gain is 2.1, disturbed by a factor that depends on the number of the run. */
const pairs = (count: number, factor: (run: number) => number): { size: number; runMs: number }[] =>
  Array.from({ length: count }, (_, i) => [
    { size: 1, runMs: factor(2 * i) },
    { size: 32, runMs: (32 / 2.1) * factor(2 * i + 1) },
  ]).flat();

/** 1 with a scatter, from one seed. */
function noisy(seed: number, scatter: number): () => number {
  const random = seededRandom(seed);
  return () => Math.exp(scatter * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()));
}

const holds = ({ low, high }: StartGain, truth: number): boolean => truth >= low / 1.1 && truth <= high * 1.1;

test("the gain of a warm-up has a range that holds the truth: at most 1 of 100 is off (700 seeds of unseen noise)", () => {
  for (const [count, scatter] of [
    [3, 0.02],
    [3, 0.1],
    [5, 0.1],
    [12, 0.3],
    [30, 0.3],
    [50, 0.6],
  ] as const) {
    // prettier-ignore
    let [shown, wrong] = [0, 0];
    for (let seed = 1; seed <= 700; seed++) {
      const gain = gainAtStart(pairs(count, noisy(9000 + seed, scatter)));
      if (gain === null) continue;
      shown++;
      if (!holds(gain, 2.1)) wrong++;
    }
    assert.ok(shown > 600 || scatter >= 0.6, `${shown} of 700 shown with ${count} pairs, scatter ${scatter}`);
    assert.ok(wrong <= 0.01 * shown, `${wrong} of ${shown} wrong with ${count} pairs, scatter ${scatter}`);
  }
});

test("a spell of a slow machine, a drift and single stalls do not move it", () => {
  for (const factor of [
    (run: number) => (run > 10 && run < 24 ? 5 : 1),
    (run: number) => 1 + run / 20,
    (run: number) => (run % 9 === 4 ? 30 : 1),
    (run: number) => 1 + 4 * Math.exp(-run / 6),
  ]) {
    const gain = gainAtStart(pairs(20, factor));
    assert.ok(gain !== null && holds(gain, 2.1), JSON.stringify(gain));
  }
});

test("too few runs, one size alone, or times that tell nothing give no gain", () => {
  assert.equal(gainAtStart([]), null);
  assert.equal(gainAtStart(pairs(2, () => 1)), null);
  assert.equal(gainAtStart(pairs(9, () => 1).filter(({ size }) => size > 1)), null);
  assert.equal(gainAtStart(pairs(9, (run) => 10 ** (run % 3))), null);
});

test("stats() shows the gain that the executor measured before the first call, and no verdict from it", async () => {
  const batcher = createBatcher<number, number>({
    slots: 1,
    ready: () => Promise.resolve(pairs(10, () => 1)),
    run: (items) => Promise.resolve(items),
    close: () => Promise.resolve(),
  });
  await batcher.ready();
  const { verdict, cause, start, speedup } = batcher.stats().verdict;
  assert.deepEqual([verdict, cause, speedup], ["measuring", "few-runs", null]);
  assert.ok(start !== null && Math.abs(start.speedup - 2.1) < 1e-9 && start.batchSize === 32 && start.runs === 20);
  await batcher.close();
});

/** The verdict on waves of these sizes, with runs that take `costMs` times a factor. */
async function causeOf(
  sizes: (wave: number) => number,
  factor: () => number,
  costMs = (size: number) => 10 + 0.3 * size,
): Promise<OpenCause | null> {
  const clock = virtualClock();
  const batcher = createBatcher<number, number>(
    async (items) => {
      await clock.sleep(costMs(items.length) * factor());
      return items;
    },
    { clock, concurrency: 1, maxBatchSize: 32 },
  );
  for (let wave = 0; wave < 200; wave++) {
    await Promise.all(Array.from({ length: sizes(wave) }, (_, item) => batcher(item)));
    await clock.sleep(20);
  }
  const { verdict, cause } = batcher.stats().verdict;
  assert.equal(cause === null, verdict !== "measuring", "a verdict, or the cause why there is none");
  return cause;
}

test("an open verdict names the cause that keeps it open", async () => {
  const steady = (): number => 1;
  const waves = (wave: number): number => [1, 2, 4][wave % 3]!;
  const small = (size: number): number => 10 * (0.3 + size);
  for (const [cause, sizes, factor, costMs] of [
    ["few-runs", (wave) => (wave < 20 ? 1 : 0), steady],
    ["one-size", () => 32, steady],
    // Closed, as nothing to batch.
    [null, () => 1, steady],
    ["scatter", waves, noisy(3, 1), small],
    ["close", waves, noisy(3, 0.02), small],
    ["pace", (wave) => (wave < 100 ? 1 : 16), steady],
    [null, (wave) => [1, 16][wave % 2]!, steady],
  ] as [OpenCause | null, (wave: number) => number, () => number, ((size: number) => number)?][])
    assert.equal(await causeOf(sizes, factor, costMs), cause);
});
