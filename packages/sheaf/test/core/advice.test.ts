import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { advise, type AdviceInput } from "../../dist/core/advice.js";
import { createBatcher } from "../../dist/index.js";

const spread = (p50: number): AdviceInput["runMs"] => ({ p50, p95: p50, p99: p50, max: p50 });
/** A batcher that works: half full, twice as fast, no wait to speak of. */
const healthy: AdviceInput = {
  batches: 1000,
  fillRate: 0.5,
  meanBatchSize: 16,
  queueWaitMs: spread(2),
  runMs: spread(10),
  costModel: { fixedMs: 5, perItemMs: 0.3, r2: 0.99 },
  speedup: 8,
  expectedSpeedup: 8.6,
  busy: { cpuCores: 0.1, slotShare: 0.9 },
};
const adviceFor = (changed: Partial<AdviceInput>): string => advise({ ...healthy, ...changed }).join("\n");

test("a batcher that works gets no advice, and none gets any before 50 batches", () => {
  assert.equal(adviceFor({}), "");
  assert.equal(adviceFor({ fillRate: 0.99, batches: 49 }), "");
});

test("below a fill of 20 % maxBatchSize is over-provisioned, above 95 % it is the bottleneck", () => {
  assert.match(adviceFor({ fillRate: 0.19 }), /19 % full \(mean 16\.0\): maxBatchSize is over-provisioned/);
  assert.match(adviceFor({ fillRate: 0.96 }), /96 % full: maxBatchSize is the bottleneck/);
  assert.equal(adviceFor({ fillRate: 0.2 }) + adviceFor({ fillRate: 0.95 }), "");
  assert.equal(adviceFor({ fillRate: 0 }), "", "without a limit there is no fill rate");
});

test("a speed-up below 0.7 of the expected one is contention", () => {
  assert.match(adviceFor({ speedup: 6 }), /Speed-up is 6\.0 where the cost model expects 8\.6: runs contend/);
  assert.equal(adviceFor({ speedup: 0.8, expectedSpeedup: 1.4 }), "", "nothing to gain, nothing to lose");
  assert.equal(
    adviceFor({ speedup: 0.7 * 8.6 }) + adviceFor({ speedup: null }) + adviceFor({ expectedSpeedup: null }),
    "",
  );
});

test("a wait longer than the run, with all slots taken and an idle process, is slot-bound", () => {
  const waiting = { queueWaitMs: spread(25) };
  assert.match(
    adviceFor(waiting),
    /Items wait 25\.0 ms for runs of 10\.0 ms: every slot is taken .*\(10 % of a core\)/,
  );
  for (const busy of [{ cpuCores: 0.9, slotShare: 0.9 }, { cpuCores: 0.1, slotShare: 0.3 }, null])
    // prettier-ignore
    assert.equal(adviceFor({ ...waiting, busy }), "");
});

test("where a run has no fixed part to share, batching gains nothing, unless it measurably does", () => {
  const costModel = { fixedMs: 0.01, perItemMs: 3, r2: 0.9 };
  assert.match(adviceFor({ costModel, speedup: null }), /^Do not batch: .* batching gains nothing\.$/);
  assert.equal(adviceFor({ costModel, speedup: 3, expectedSpeedup: 1 }), "");
  assert.equal(adviceFor({ costModel, speedup: null, meanBatchSize: 1 }), "", "nothing is batched");
});

test("a batcher that waits for a slow service in its only slot is told so", async () => {
  const lookUp = createBatcher(async (ids: number[]) => (await sleep(5), ids), { maxBatchSize: 4, concurrency: 1 });
  await lookUp.many(Array.from({ length: 240 }, (_, id) => id));
  assert.match(lookUp.stats().advice.join("\n"), /every slot is taken while this process idles/);
});
