import assert from "node:assert/strict";
import { test } from "node:test";
import { Histogram } from "../../dist/internal/metrics.js";
import { RollingHistogram } from "../../dist/core/measure/histogram.js";

for (const [perOctave, error] of [
  [256, 0.002],
  [8, 0.07],
] as const) {
  test(`every quantile is within ${100 * error} % of the exact one with ${perOctave} buckets an octave, from microseconds to minutes`, () => {
    const histogram = new Histogram(perOctave);
    const values = Array.from({ length: 20_000 }, (_, i) => 0.002 * 1.0009 ** i);
    for (const value of values) histogram.record(value);
    for (const quantile of [0.01, 0.5, 0.95, 0.99, 0.999]) {
      const exact = values[Math.ceil(quantile * values.length) - 1]!;
      const off = Math.abs(histogram.quantile(quantile) / exact - 1);
      assert.ok(off < error, `p${100 * quantile} is ${100 * off} % off`);
    }
    assert.equal(histogram.quantile(1), values.at(-1));
    assert.equal(histogram.max, values.at(-1));
  });
}

test("a histogram without data answers 0", () => {
  const histogram = new Histogram();
  assert.deepEqual([histogram.max, histogram.quantile(0.99)], [0, 0]);
});

test("durations beyond either end count in the outermost bucket", () => {
  const histogram = new Histogram();
  for (const value of [-1, 0, 1e-9, 5e9, Infinity]) histogram.record(value);
  assert.equal(histogram.max, Infinity);
  assert.ok(histogram.quantile(0.5) <= 0.001);
  assert.ok(histogram.quantile(0.7) > 2e6);
});

test("a duration counts as often as given, in parts too, and in the sum of two histograms", () => {
  const [some, others] = [new Histogram(), new Histogram()];
  some.record(1, 2.5);
  some.record(2, 0.5);
  others.record(100, 6);
  assert.ok(some.quantile(0.5) < 1.01);
  some.add(others);
  assert.deepEqual([some.max, Math.round(some.quantile(0.2)), Math.round(some.quantile(0.5))], [100, 1, 100]);
});

test("a rolling histogram drops what is older than its six slices of 10 s, on a clock that starts below 0 too", () => {
  const histogram = new RollingHistogram();
  histogram.record(-25_000, 1000);
  histogram.record(-15_000, 50);
  histogram.record(-15_000, 50);
  assert.equal(histogram.distribution(0).max, 1000);
  assert.equal(histogram.distribution(29_999).max, 1000);
  assert.deepEqual(histogram.distribution(30_000), { p50: 50, p95: 50, p99: 50, max: 50 });
  assert.deepEqual(histogram.distribution(1e9), { p50: 0, p95: 0, p99: 0, max: 0 });
});
