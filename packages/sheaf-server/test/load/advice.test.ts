import assert from "node:assert/strict";
import { test } from "node:test";
import type { MeasuredPoint } from "sheaf/internal/tuning";
import { adviseOn, verdictLines } from "../../dist/load/tune/advice.js";

const costOf = (fixedMs: number, perItemMs: number, sizes: readonly number[], error: number) => ({
  fixedMs,
  perItemMs,
  r2: 1,
  table: sizes.map((size): MeasuredPoint => [size, fixedMs + perItemMs * size, error]),
});

interface Asked {
  readonly ratePerS?: number;
  readonly budget?: number;
  readonly order?: "free" | "strict";
}

test("advice is settled where the whole range supports its verdict, and only there", () => {
  const cases = [
    { what: "a large gain", cost: [10, 0.3], error: 0.3, settled: true, verdict: "batch" },
    { what: "no gain, known well", cost: [0.01, 3], error: 0.01, settled: true, verdict: "do not batch" },
    { what: "no gain, known badly", cost: [0.01, 3], error: 0.3, settled: false, missing: "a gain of 1.1×" },
    { what: "a small gain, known badly", cost: [1, 3], error: 0.2, settled: false, missing: "a gain of 1.1×" },
    { what: "a busy share near 10 %", cost: [10, 0.3], ratePerS: 10, error: 0.1, settled: false, missing: "10 % busy one by one" }, // prettier-ignore
    { what: "hardly any items", cost: [1, 3], ratePerS: 0.1, error: 0.5, settled: true, verdict: "do not batch" },
    { what: "a budget near one run", cost: [10, 0.3], budget: 10, error: 0.1, settled: true, verdict: "do not batch" },
    { what: "a budget near two runs", cost: [10, 0.3], budget: 21.3, error: 0.1, settled: false, missing: "the budget" }, // prettier-ignore
    { what: "strict order", cost: [1, 3], order: "strict", error: 0.5, settled: true, verdict: "do not batch" },
  ] as const;
  for (const { what, cost, error, settled, ...rest } of cases) {
    const costModel = costOf(cost[0], cost[1], [1, 4, 16], error);
    const { ratePerS = 200, budget, order } = rest as Asked;
    const advice = adviseOn(costModel, { ratePerS, latencyBudgetMs: budget, order });
    assert.equal(advice.isSettled, settled, what);
    if ("verdict" in rest) assert.equal(advice.verdict, rest.verdict, what);
    const said = verdictLines("For it", costModel, advice).join(" ");
    if ("missing" in rest) {
      assert.match(said, /^For it: not settled/);
      assert.ok(said.endsWith(`The 95 % range reaches across ${rest.missing}: measure longer.`), said);
    } else assert.match(said, rest.verdict === "batch" ? /^For it: batch: / : /^For it: DO NOT BATCH: /);
  }
});

test("size, rate and inequality come with ranges: the advice lies in them, and nothing beyond the largest size measured", () => {
  // A crowded machine: the medians are known to a third, and lie off any line.
  const table = [[1, 2.6, 0.3], [2, 6, 0.35], [4, 5.1, 0.3], [8, 11, 0.4], [16, 8.4, 0.3], [32, 15.1, 0.35]] as const; // prettier-ignore
  const advice = adviseOn({ fixedMs: 3.4, perItemMs: 0.28, r2: 0.695, table }, { ratePerS: 1000 });
  const { maxBatchSize, capacityPerS, gain } = advice.ranges;
  for (const [value, [low, high]] of [
    [advice.maxBatchSize, maxBatchSize],
    [advice.capacityPerS, capacityPerS],
    [advice.capacityPerS / advice.unbatchedCapacityPerS, gain],
  ] as const)
    assert.ok(low <= value && value <= high && low < high, `${value} in ${low} to ${high}`);
  assert.ok(maxBatchSize[1] <= 32, `${maxBatchSize}`);
  // What was measured at 32, 2,119 items/s, lies in the range of the rate.
  assert.ok(capacityPerS[0] <= 32_000 / 15.1 && 32_000 / 15.1 <= capacityPerS[1], `${capacityPerS}`);
  const reached = adviseOn({ fixedMs: 3.4, perItemMs: 0.28, r2: 0.695, table }, { ratePerS: 1000 }, {}, 700);
  assert.deepEqual(reached.ranges.capacityPerS, [700, capacityPerS[1]], "the rate that was reached lies in the range");
  const [, inequality] = verdictLines("For 1,000 items/s", { fixedMs: 3.4, perItemMs: 0.28, r2: 0.695, table }, advice);
  assert.match(inequality!, /^The inequality: .* \(its left side: [\d.]+ to [\d.]+\)\.$/);
});

test("without a single item, or without anything larger, there is no advice, but what to measure", () => {
  const missing = (sizes: readonly number[]) => adviseOn(costOf(10, 0.3, sizes, 0.01), { ratePerS: 200 }).missing;
  assert.equal(missing([4, 16]), "No single item was measured: add 1 to --sizes.");
  assert.equal(missing([1]), "Only single items were measured: add larger --sizes.");
  assert.equal(missing([1, 4]), "");
});

test("a model whose results depend on the batch is not to be batched, whatever it gains", () => {
  const costModel = costOf(10, 0.3, [1, 16], 0.01);
  const dependent = adviseOn(costModel, { ratePerS: 500 }, { selfTest: "dependent", maxBatchSize: 1 });
  assert.deepEqual([dependent.verdict, dependent.reason, dependent.maxBatchSize], ["do not batch", "batch-dependent", 1]); // prettier-ignore
  assert.deepEqual(verdictLines("For it", costModel, dependent), [
    "For it: DO NOT BATCH: an item's result depends on its batch, so n ≤ 1.",
  ]);
  for (const selfTest of ["slightly-dependent", "not-deterministic"] as const)
    assert.equal(adviseOn(costModel, { ratePerS: 500 }, { selfTest }).verdict, "batch");
});
