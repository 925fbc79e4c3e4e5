import assert from "node:assert/strict";
import { test } from "node:test";
import { Histogram } from "../../dist/shared/histogram.js";

test("every quantile is within 0.3 % of the exact one, from microseconds to minutes", () => {
  const histogram = new Histogram();
  const values = Array.from({ length: 20_000 }, (_, i) => 0.002 * 1.0009 ** i);
  for (const value of values) histogram.record(value);
  for (const quantile of [0.01, 0.5, 0.95, 0.99, 0.999]) {
    const exact = values[Math.ceil(quantile * values.length) - 1]!;
    assert.ok(Math.abs(histogram.quantile(quantile) / exact - 1) < 0.003, `p${100 * quantile}`);
  }
  assert.equal(histogram.quantile(1), values.at(-1));
  assert.equal(histogram.max, values.at(-1));
});

test("a histogram without data answers 0", () => {
  const histogram = new Histogram();
  assert.deepEqual([histogram.count, histogram.mean, histogram.max, histogram.quantile(0.99)], [0, 0, 0, 0]);
});

test("values beyond either end count in the outermost bucket", () => {
  const histogram = new Histogram();
  for (const value of [0, 1e-9, 5e9]) histogram.record(value);
  assert.equal(histogram.count, 3);
  assert.equal(histogram.max, 5e9);
  assert.ok(histogram.quantile(0.5) <= 0.001);
});
