import assert from "node:assert/strict";
import { test } from "node:test";
import { createBatcher } from "../../dist/index.js";
import { advise, type AdviceInput } from "../../dist/core/measure/advice.js";

const spread = (p50: number): AdviceInput["queueWaitMs"] => ({ p50, p95: p50, p99: p50, max: p50 });
const noStart = { cause: null, start: null };

/** A batcher that works: half full, twice as fast, no wait to speak of. */
const healthy: AdviceInput = {
  batches: 1000,
  fillRate: 0.5,
  queueWaitMs: spread(2),
  costModel: {
    fixedMs: 5,
    perItemMs: 0.3,
    fixedMsRange: [4.5, 5.5],
    perItemMsRange: [0.2, 0.4],
    runs: 300,
    basis: "runs",
  },
  verdict: { verdict: "gains", batchSize: 16, speedup: 8.6, low: 7, high: 10, runs: 300, ...noStart },
  overload: null,
};
const adviceFor = (changed: Partial<AdviceInput>): string => advise({ ...healthy, ...changed }).join("\n");

test("a batcher that works gets no advice, and none gets any before 50 batches", () => {
  assert.equal(adviceFor({}), "");
  assert.equal(adviceFor({ fillRate: 0.99, batches: 49 }), "");
});

test("above a fill of 95 % maxBatchSize is the bottleneck, where larger batches are known to gain more", () => {
  assert.match(
    adviceFor({ fillRate: 0.96 }),
    /96 % full, and an item takes less time in a larger one: maxBatchSize is/,
  );
  const steep = { ...healthy.costModel!, perItemMsRange: [2, 3] as const };
  const measuring = { ...healthy.verdict, verdict: "measuring" } as const;
  for (const changed of [
    { fillRate: 0.95 },
    { fillRate: 0.96, queueWaitMs: spread(0) },
    { fillRate: 0.96, costModel: steep },
    { fillRate: 0.96, costModel: null },
    { fillRate: 0.96, verdict: measuring },
  ])
    assert.equal(adviceFor(changed), "", JSON.stringify(changed));
});

test("a low fill is no reason for advice: it costs nothing", () => {
  assert.equal(adviceFor({ fillRate: 0.02 }), "");
});

test("where the whole range says so, batching gains nothing, and the range is named", () => {
  const verdict = {
    verdict: "gains-nothing",
    batchSize: 8,
    speedup: 1.01,
    low: 0.95,
    high: 1.08,
    runs: 300,
    ...noStart,
  } as const;
  assert.match(adviceFor({ verdict }), /^Do not batch: with 8\.0 items .* 0\.95 to 1\.08 times .* gains nothing\.$/);
  assert.equal(adviceFor({ verdict: { ...verdict, verdict: "measuring" } }), "");
  assert.equal(adviceFor({ verdict: { ...verdict, batchSize: 1.4 } }), "", "nothing is batched");
});

test("an await in a loop closes the verdict, and the advice names the two usual mistakes", async () => {
  const double = createBatcher((numbers: number[]) => numbers.map((number) => 2 * number));
  for (let call = 0; call < 49; call++) await double(call);
  assert.deepEqual(double.stats().advice, []);
  await double(49);
  const { verdict, advice } = double.stats();
  assert.deepEqual(
    { verdict: verdict.verdict, speedup: verdict.speedup, low: verdict.low, cause: verdict.cause },
    { verdict: "nothing-to-batch", speedup: null, low: null, cause: null },
  );
  assert.match(
    advice.join(),
    /^Items come one at a time: each of 50 runs held one, .*outside the handler.*Promise\.all/,
  );

  await Promise.all([double(1), double(2)]);
  assert.equal(double.stats().verdict.verdict, "measuring");
  assert.deepEqual(double.stats().advice, []);
});
