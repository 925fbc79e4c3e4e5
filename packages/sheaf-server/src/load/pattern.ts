import { seededRandom } from "sheaf/internal/tuning";

export const openPatterns = ["steady", "burst", "ramp", "step", "surge"] as const;
export type OpenPattern = (typeof openPatterns)[number];
/** `closed`: callers in a loop. `trace`: recorded arrivals. */
export type Pattern = OpenPattern | "closed" | "trace";

/** A stretch of a pattern whose rate changes linearly. Rates are in requests per second. */
export interface Phase {
  readonly label: string;
  readonly startAtMs: number;
  readonly endAtMs: number;
  readonly startPerS: number;
  readonly endPerS: number;
}

/** One burst: a quarter of each period at three times the rate, the rest at a third of it. */
const burstPeriodMs = 2000;
const stepFactors = [0.2, 0.6, 1, 1.4, 1.8];
const rampSlices = 10;
/** Shares of the duration before, in and after the surge, and how many times the rate before comes in it. */
const surgeShape = { before: 1 / 8, during: 3 / 8, factor: 3 };

/**
 * The phases of a pattern. All patterns have the same mean, `ratePerS`, so that their results can be set side by side:
 * steady is constant, burst alternates 3× and 1/3×, ramp rises from 0 to 2×, step climbs 0.2 0.6 1 1.4 1.8×, and surge
 * has 4/7× for an eighth of the duration, 12/7× for three eighths, and 4/7× again.
 */
export function phasesOf(pattern: OpenPattern, ratePerS: number, durationMs: number): Phase[] {
  const constant = (label: string, startAtMs: number, endAtMs: number, perS: number): Phase => ({
    label,
    startAtMs,
    endAtMs,
    startPerS: perS,
    endPerS: perS,
  });
  if (pattern === "steady") return [constant("steady", 0, durationMs, ratePerS)];
  if (pattern === "step") {
    const lengthMs = durationMs / stepFactors.length;
    return stepFactors.map((factor, i) => constant(`${factor}×`, i * lengthMs, (i + 1) * lengthMs, factor * ratePerS));
  }
  if (pattern === "ramp") {
    return Array.from({ length: rampSlices }, (_, i) => ({
      label: `${i + 1}/${rampSlices}`,
      startAtMs: (i * durationMs) / rampSlices,
      endAtMs: ((i + 1) * durationMs) / rampSlices,
      startPerS: (2 * ratePerS * i) / rampSlices,
      endPerS: (2 * ratePerS * (i + 1)) / rampSlices,
    }));
  }
  if (pattern === "surge") {
    const { before, during, factor } = surgeShape;
    const [beginsAtMs, endsAtMs] = [before * durationMs, (before + during) * durationMs];
    const basePerS = ratePerS / (1 + during * (factor - 1));
    return [
      constant("before", 0, beginsAtMs, basePerS),
      constant("surge", beginsAtMs, endsAtMs, factor * basePerS),
      constant("after", endsAtMs, durationMs, basePerS),
    ];
  }
  const periods = Math.max(1, Math.round(durationMs / burstPeriodMs));
  const periodMs = durationMs / periods;
  return Array.from({ length: periods }, (_, i) => {
    const calmAtMs = i * periodMs;
    const burstAtMs = calmAtMs + 0.75 * periodMs;
    return [
      constant("calm", calmAtMs, burstAtMs, ratePerS / 3),
      constant("burst", burstAtMs, calmAtMs + periodMs, ratePerS * 3),
    ];
  }).flat();
}

/** When the surge of a pattern is; undefined for a pattern without one. */
export function surgeOf(phases: readonly Phase[]): { readonly atMs: number; readonly forMs: number } | undefined {
  const surge = phases.find(({ label }) => label === "surge");
  return surge && { atMs: surge.startAtMs, forMs: surge.endAtMs - surge.startAtMs };
}

/**
 * Intended send times in milliseconds from the start: a Poisson process whose rate follows the phases. Exact for linear
 * rates: unit-rate arrivals are mapped through the inverse of the cumulated rate.
 */
export function* poissonArrivals(phases: readonly Phase[], seed: number): Generator<number, void, void> {
  const random = seededRandom(seed);
  let untilNext = -Math.log(1 - random());
  for (const { startAtMs, endAtMs, startPerS, endPerS } of phases) {
    const lengthS = (endAtMs - startAtMs) / 1000;
    const slope = (endPerS - startPerS) / lengthS;
    const expected = ((startPerS + endPerS) / 2) * lengthS;
    let position = 0;
    while (position + untilNext < expected) {
      position += untilNext;
      yield startAtMs + 1000 * timeToAccumulate(position, startPerS, slope);
      untilNext = -Math.log(1 - random());
    }
    untilNext -= expected - position;
  }
}

/** Seconds until `count` arrivals are expected at rate `perS + slope·t`. The form without cancellation near slope 0. */
function timeToAccumulate(count: number, perS: number, slope: number): number {
  return (2 * count) / (perS + Math.sqrt(perS * perS + 2 * slope * count));
}
