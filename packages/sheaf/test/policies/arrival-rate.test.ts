import assert from "node:assert/strict";
import { test } from "node:test";
import { ArrivalRate } from "../../dist/policies/auto/arrival-rate.js";
import { EventRate, octaveEndMs, octaveOf } from "../../dist/policies/auto/linger.js";
import { seededRandom } from "../../dist/internal/tuning.js";

test("the rate of a Poisson stream is found within a fifth", () => {
  const random = seededRandom(3);
  const rate = new ArrivalRate();
  let nowMs = 1000;
  let sum = 0;
  for (let i = 0; i < 4000; i++) {
    nowMs -= Math.log(1 - random()) / 2;
    rate.arrived(nowMs, 1);
    rate.spanAtLeast(20);
    if (i >= 1000) sum += rate.perMs(nowMs) / 3000;
  }
  assert.ok(Math.abs(sum - 2) < 0.4, `${sum} per ms, 2 came`);
});

test("a wave of a thousand counts as a thousand arrivals", () => {
  const rate = new ArrivalRate();
  for (let i = 1; i <= 50; i++) {
    rate.arrived(i * 100, 1000);
    rate.spanAtLeast(1000);
  }
  const perMs = rate.perMs(5050);
  assert.ok(perMs > 7 && perMs < 13, `${perMs} per ms, 10 came`);
});

test("the rate is finite and fades: cold, after one arrival, and after a long silence", () => {
  const rate = new ArrivalRate();
  assert.equal(rate.perMs(5), 0);
  rate.spanAtLeast(0);
  rate.arrived(10, 1);
  assert.ok(Number.isFinite(rate.perMs(10)));
  assert.ok(rate.perMs(1e6) < 1e-9);
  for (let i = 0; i < 100; i++) {
    rate.arrived(10, 1);
    rate.spanAtLeast(NaN);
    rate.spanAtLeast(0);
  }
  assert.ok(Number.isFinite(rate.perMs(10)) && Number.isFinite(rate.perMs(10.1)));
});

test("events per unit and millisecond waited: constant for a memoryless process, in every octave seen", () => {
  const random = seededRandom(5);
  const rates = new EventRate();
  for (let i = 0; i < 500; i++) {
    const elapsedMs = -Math.log(1 - random()) / 0.5;
    rates.expose(0, elapsedMs, 1);
    rates.happened(elapsedMs);
  }
  for (const [from, to] of [
    [0.001, 1],
    [1, 2],
    [2, 10],
  ] as const) {
    const rate = rates.between(octaveOf(from), octaveOf(to));
    assert.ok(Math.abs(rate - 0.5) < 0.15, `${rate} between ${from} and ${to} ms`);
  }
});

test("a clump shows: many events right after an event, few later", () => {
  const rates = new EventRate();
  for (let clump = 0; clump < 50; clump++) {
    for (let i = 0; i < 15; i++) {
      rates.expose(0, 0.02, 1);
      rates.happened(0.02);
    }
    rates.expose(0, 100, 1);
    rates.happened(100);
  }
  assert.ok(rates.between(0, octaveOf(0.02)) > 100 * rates.between(octaveOf(1), octaveOf(100)));
  assert.equal(new EventRate().between(0, 23), 0);
});

test("every elapsed time falls inside its octave", () => {
  for (const elapsedMs of [0, 0.0005, 0.001, 0.0015, 0.5, 1, 3, 1000, 8000, 1e9, Infinity]) {
    const octave = octaveOf(elapsedMs);
    assert.ok(octave >= 0 && octave <= 23);
    if (octave < 23) assert.ok(elapsedMs <= octaveEndMs(octave), `${elapsedMs} in octave ${octave}`);
    if (octave > 0) assert.ok(elapsedMs >= octaveEndMs(octave - 1), `${elapsedMs} in octave ${octave}`);
  }
});
