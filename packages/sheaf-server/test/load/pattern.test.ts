import assert from "node:assert/strict";
import { test } from "node:test";
import { openPatterns, phasesOf, poissonArrivals } from "../../dist/load/pattern.js";

for (const pattern of openPatterns) {
  test(`${pattern} has the asked mean rate, in order, within its span, and the same for the same seed`, () => {
    const phases = phasesOf(pattern, 1000, 60_000);
    const arrivals = [...poissonArrivals(phases, 7)];
    // Five standard deviations of a Poisson count.
    assert.ok(Math.abs(arrivals.length - 60_000) < 5 * Math.sqrt(60_000), `${arrivals.length} arrivals (seed 7)`);
    assert.ok(arrivals.every((atMs, i) => atMs >= (arrivals[i - 1] ?? 0) && atMs < 60_000));
    assert.deepEqual(arrivals, [...poissonArrivals(phases, 7)]);
    assert.notDeepEqual(arrivals, [...poissonArrivals(phases, 8)]);
  });
}

test("every phase sees the arrivals its rate promises, also where the rate is linear", () => {
  for (const pattern of openPatterns) {
    const phases = phasesOf(pattern, 1000, 60_000);
    const arrivals = [...poissonArrivals(phases, 3)];
    for (const { startAtMs, endAtMs, startPerS, endPerS, label } of phases) {
      const expected = ((startPerS + endPerS) / 2) * ((endAtMs - startAtMs) / 1000);
      const found = arrivals.filter((atMs) => atMs >= startAtMs && atMs < endAtMs).length;
      assert.ok(
        Math.abs(found - expected) < 5 * Math.sqrt(expected),
        `${pattern} ${label}: ${found}, expected ${expected}`,
      );
    }
  }
});

test("steady gaps are exponential: their coefficient of variation is 1", () => {
  const arrivals = [...poissonArrivals(phasesOf("steady", 1000, 60_000), 5)];
  const gaps = arrivals.slice(1).map((atMs, i) => atMs - arrivals[i]!);
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
  const variance = gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length;
  assert.ok(Math.abs(Math.sqrt(variance) / mean - 1) < 0.03);
});
