import assert from "node:assert/strict";
import { test } from "node:test";
import { recommend } from "../../dist/tuning/index.js";
import { fitLine } from "../../dist/internal/tuning.js";

const gpu = { fixedMs: 10, perItemMs: 0.3 };

test("a purely per-item cost: do not batch, with the inequality", () => {
  const advice = recommend({ fixedMs: 0, perItemMs: 2 }, { ratePerS: 400 });
  assert.equal(advice.verdict, "do not batch");
  assert.equal(advice.reason, "no-fixed-part");
  assert.match(advice.because, /^no fixed part to share: \d+ × s\(1\) ÷ s\(\d+\) = .* = 1\.00 < 1\.1$/);
  assert.equal(advice.maxBatchSize, 1);
});

test("a high fixed part at a rate that one at a time could not serve: batch, with capacity, size and speed-up", () => {
  const advice = recommend(gpu, { ratePerS: 1000 });
  assert.equal(advice.verdict, "batch");
  assert.ok(Math.abs(advice.unbatchedCapacityPerS - 1000 / 10.3) < 1e-9);
  assert.ok(advice.capacityPerS > 2500);
  assert.ok(advice.utilisation < 0.5);
  // Batches start as soon as the slot is free: n = λ·s(n), so n = λ·τ0 ÷ (1 − λ·α).
  assert.ok(Math.abs(advice.meanBatchSize - 10 / 0.7) < 0.01, `${advice.meanBatchSize}`);
  assert.ok(Math.abs(advice.expectedSpeedup - ((10 / 0.7) * 10.3) / (10 + 3 / 0.7)) < 0.01);
});

test("where independent items hardly ever meet only latency counts: do not batch", () => {
  const advice = recommend(gpu, { ratePerS: 5 });
  assert.equal(advice.reason, "low-rate");
  assert.match(advice.because, /5\/s × 10\.3 ms ÷ 1 = 5\.2 % busy < 10 %, independent items hardly ever meet$/);
});

test("strict order: do not batch, whatever the cost", () => {
  const advice = recommend(gpu, { ratePerS: 1000, order: "strict" });
  assert.deepEqual([advice.verdict, advice.reason], ["do not batch", "strict-order"]);
  assert.match(advice.because, /n ≤ 1/);
});

test("a budget below one run, or below a wait and a run of two, leaves nothing to batch", () => {
  const one = recommend(gpu, { ratePerS: 1000, latencyBudgetMs: 8 });
  assert.equal(one.reason, "budget-too-short");
  assert.match(one.because, /s\(1\) = 10\.3 ms > 8 ms/);
  const two = recommend(gpu, { ratePerS: 1000, latencyBudgetMs: 15 });
  assert.equal(two.reason, "budget-too-short");
  assert.match(two.because, /21\.2 ms for 2 items, > 15 ms/);
});

test("the recommended size keeps a wait and a run within the budget", () => {
  for (const latencyBudgetMs of [25, 40, 100, 300]) {
    for (const slots of [1, 2, 4]) {
      const advice = recommend(gpu, { ratePerS: 500, latencyBudgetMs, slots });
      assert.equal(advice.verdict, "batch");
      const worstMs = (10 + 0.3 * advice.maxBatchSize) * (1 + 1 / slots);
      assert.ok(worstMs <= latencyBudgetMs, `budget ${latencyBudgetMs}: ${worstMs}`);
      assert.ok(worstMs + advice.maxWaitMs <= latencyBudgetMs * 1.005);
    }
  }
});

test("a table overrules the line: a staircase is recommended at the end of its step", () => {
  const table = [1, 2, 4, 8, 16, 32].map((size) => [size, size <= 8 ? 4 : size] as const);
  const advice = recommend({ ...fitLine(table), table }, { ratePerS: 1500 });
  assert.equal(advice.maxBatchSize, 8);
  assert.equal(advice.capacityPerS, 2000);
});

test("a lucky measurement within its error is not a gain", () => {
  const lucky = {
    fixedMs: 0,
    perItemMs: 1,
    table: [
      [1, 1.1, 0.1],
      [8, 6.5, 0.15],
      [32, 32, 0.02],
    ],
  } as const;
  assert.equal(recommend(lucky, { ratePerS: 500 }).reason, "no-fixed-part");
  const sure = {
    ...lucky,
    table: [
      [1, 1.1, 0.01],
      [8, 6.5, 0.01],
      [32, 32, 0.02],
    ],
  } as const;
  assert.equal(recommend(sure, { ratePerS: 500 }).verdict, "batch");
});

test("a rate above every capacity shows in the utilisation", () => {
  const advice = recommend(gpu, { ratePerS: 10_000 });
  assert.equal(advice.verdict, "batch");
  assert.ok(advice.utilisation > 3);
});

test("no size beyond the largest in the table is advised, also where the line still rises or a larger one is allowed", () => {
  const table = [1, 4, 32].map((size) => [size, 14 + 0.035 * size] as const);
  for (const maxBatchSize of [undefined, 64, 1000]) {
    const { maxBatchSize: advised, capacityPerS } = recommend(
      { ...fitLine(table), table },
      { ratePerS: 1500, maxBatchSize },
    );
    assert.ok(advised <= 32, `${advised}`);
    assert.ok(capacityPerS <= (1000 * 32) / (14 + 0.035 * 32) + 1e-6, `${capacityPerS}/s`);
  }
});

test("maxBatchSize caps the advice", () => {
  assert.equal(recommend(gpu, { ratePerS: 1000, maxBatchSize: 2 }).maxBatchSize, 2);
});

test("the fit recovers a line exactly and never goes below 0", () => {
  const exact = fitLine([1, 2, 8, 32].map((size) => [size, 10 + 0.3 * size] as const));
  assert.ok(Math.abs(exact.fixedMs - 10) < 1e-9 && Math.abs(exact.perItemMs - 0.3) < 1e-9 && exact.r2 > 0.999999);
  assert.equal(
    fitLine([
      [1, 1],
      [2, 3],
      [4, 8],
    ]).fixedMs,
    0,
  );
  assert.equal(
    fitLine([
      [1, 5],
      [2, 4],
      [4, 3],
    ]).perItemMs,
    0,
  );
  assert.deepEqual(fitLine([[4, 8]]), { fixedMs: 8, perItemMs: 0, r2: 0 });
});
