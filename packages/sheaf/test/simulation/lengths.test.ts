import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher } from "../../dist/index.js";
import { virtualClock } from "../../dist/testing/index.js";
import { seededRandom } from "../../dist/internal/tuning.js";
import { inProof } from "../support/seeds.js";

const count = 4000;
const maxBatchSize = 32;

/** Mean latency of texts of 5 to 400 words, on an encoder whose runs cost little beside its items. */
async function meanMs(fixedMs: number, load: number, seed: number, byWeight: boolean): Promise<number> {
  const random = seededRandom(seed);
  const words = Array.from({ length: count }, () => Math.round(5 * 80 ** random()));
  const runMs = (texts: readonly number[]): number =>
    fixedMs + texts.reduce((sum, length) => sum + 0.15 + 0.018 * length, 0);
  const perMs = (load * maxBatchSize) / ((runMs(words) - fixedMs) / (count / maxBatchSize) + fixedMs);
  const clock = virtualClock();
  const run = async (texts: readonly number[]): Promise<readonly number[]> => {
    await clock.sleep(runMs(texts));
    return texts;
  };
  const weigh = byWeight ? (length: number): number => length : undefined;
  const options = { clock, concurrency: 1, maxBatchSize, maxQueueSize: Infinity };
  const batcher = createBatcher(run, { ...options, ...(weigh && { weigh }) });
  let atMs = 0;
  let sumMs = 0;
  for (const length of words) {
    const comesAtMs = (atMs -= Math.log(1 - random()) / perMs);
    clock.at(comesAtMs, () => {
      void batcher(length).then(() => (sumMs += clock.now() - comesAtMs));
    });
  }
  await clock.idle();
  await batcher.close();
  return sumMs / count;
}

for (const fixedMs of [0.3, 1, 3])
  for (const load of inProof([0.8, 0.95], [0.95]))
    test(`fixed part ${fixedMs} ms, load ${load}: weights do not cost the throughput that keeps up with it`, async () => {
      const seed = 100 * fixedMs + 10 * load;
      const [byWeight, bySize] = [await meanMs(fixedMs, load, seed, true), await meanMs(fixedMs, load, seed, false)];
      assert.ok(byWeight <= 1.25 * bySize, `mean ${byWeight.toFixed(1)} ms by weight, ${bySize.toFixed(1)} ms by size`);
    });
