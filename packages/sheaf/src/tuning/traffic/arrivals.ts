import { describe } from "../../shared/describe.ts";
import { notNegative, positive, spanMs, within } from "./checks.ts";
import type { Random } from "./random.ts";

/** Most calls of a simulation, and most clients of a closed loop. */
export const maxCalls = 1e7;

/**
 * When calls come in a simulation. Rates are means over the whole pattern; lengths marked "mean" are exponential.
 * - poisson: independent callers;
 * - periodic: one every 1 / rate;
 * - burst: poisson at a high rate for onMs (mean), nothing for offMs (mean);
 * - clump: `size` calls (default 16) spread over spreadMs (default 0.3), clumps poisson: the fan-out of one request;
 * - ramp, step: poisson at a rate that moves from fromPerS to toPerS over durationMs, or at atMs;
 * - surge: poisson at `factor` times ratePerS for forMs from atMs on, and at ratePerS before and after;
 * - closed: `clients`, each of which calls again thinkMs (mean, default 0) after its answer;
 * - trace: recorded moments, >= 0 and ascending.
 */
export type Arrivals =
  | { readonly pattern: "poisson" | "periodic"; readonly ratePerS: number }
  | { readonly pattern: "burst"; readonly ratePerS: number; readonly onMs: number; readonly offMs: number }
  | {
      readonly pattern: "clump";
      readonly ratePerS: number;
      /** @default 16 */
      readonly size?: number | undefined;
      /** @default 0.3 */
      readonly spreadMs?: number | undefined;
    }
  | { readonly pattern: "ramp"; readonly fromPerS: number; readonly toPerS: number; readonly durationMs: number }
  | { readonly pattern: "step"; readonly fromPerS: number; readonly toPerS: number; readonly atMs: number }
  | {
      readonly pattern: "surge";
      readonly ratePerS: number;
      readonly factor: number;
      readonly atMs: number;
      readonly forMs: number;
    }
  | {
      readonly pattern: "closed";
      readonly clients: number;
      /** @default 0 */
      readonly thinkMs?: number | undefined;
    }
  | {
      readonly pattern: "trace";
      readonly atMs: ArrayLike<number>;
      /**
       * The lane of each call: 0 immediate, 1 interactive, 2 bulk.
       * @default as `priorities` say
       */
      readonly lanes?: ArrayLike<number> | undefined;
      /**
       * The timeout of each call, in milliseconds; 0: the call has none.
       * @default none
       */
      readonly timeoutsMs?: ArrayLike<number> | undefined;
    };

export type OpenArrivals = Exclude<Arrivals, { pattern: "closed" }>;

/**
 * The moments of an open pattern, one after the other, ascending; `undefined` when a trace is at its end.
 * @throws {RangeError} now for options that make no sense, later for a moment beyond 30 years.
 */
export function momentsOf(arrivals: OpenArrivals, random: Random): () => number | undefined {
  const next = patternOf(arrivals, random);
  return () => {
    const atMs = next();
    return atMs === undefined ? undefined : spanMs(`the next moment of pattern "${arrivals.pattern}"`, atMs);
  };
}

function patternOf(arrivals: OpenArrivals, random: Random): () => number | undefined {
  switch (arrivals.pattern) {
    case "poisson": {
      const gapMs = 1000 / of(arrivals, "ratePerS");
      let atMs = 0;
      return () => (atMs += random.exponential(gapMs));
    }
    case "periodic": {
      const gapMs = 1000 / of(arrivals, "ratePerS");
      let count = 0;
      return () => (count === 0 ? count++ : count++ * gapMs); // 0 · Infinity is not a number
    }
    case "burst":
      return bursts(arrivals, random);
    case "clump":
      return clumps(arrivals, random);
    case "ramp":
      return ramp(arrivals, random);
    case "step":
      return step(arrivals, random);
    case "surge":
      return surge(arrivals, random);
    case "trace":
      return trace(arrivals.atMs);
    default:
      throw new RangeError(`pattern of arrivals must be ${patterns}, got ${describe(pattern(arrivals))}`);
  }
}

const patterns = '"poisson", "periodic", "burst", "clump", "ramp", "step", "surge", "closed" or "trace"';
const pattern = (arrivals: unknown): unknown => (arrivals as { pattern?: unknown } | null | undefined)?.pattern;

function bursts(arrivals: Extract<Arrivals, { pattern: "burst" }>, random: Random): () => number {
  const onMs = of(arrivals, "onMs");
  const offMs = of(arrivals, "offMs");
  const gapMs = ((1000 / of(arrivals, "ratePerS")) * onMs) / (onMs + offMs);
  let atMs = 0;
  let endsAtMs = random.exponential(onMs);
  return () => {
    let nextMs = atMs + random.exponential(gapMs);
    while (nextMs > endsAtMs) {
      // The rest of the gap continues in the next burst: a Poisson stream has no memory.
      const startsAtMs = endsAtMs + random.exponential(offMs);
      nextMs += startsAtMs - endsAtMs;
      endsAtMs = startsAtMs + random.exponential(onMs);
    }
    return (atMs = nextMs);
  };
}

function clumps(arrivals: Extract<Arrivals, { pattern: "clump" }>, random: Random): () => number {
  const size = within(
    "size of a clump",
    arrivals.size ?? 16,
    (number) => Number.isInteger(number) && number >= 1 && number <= maxCalls,
    `an integer, 1 to ${maxCalls}`,
  );
  const spreadMs = spanMs("spreadMs of a clump", arrivals.spreadMs ?? 0.3);
  const gapMs = (1000 * size) / of(arrivals, "ratePerS");
  let clumpAtMs = 0;
  let offsets: number[] = [];
  let lastAtMs = 0;
  return () => {
    if (offsets.length === 0) {
      clumpAtMs += random.exponential(gapMs);
      offsets = Array.from({ length: size }, () => random.uniform() * spreadMs).sort((a, b) => b - a);
    }
    // Two clumps may overlap: moments stay ascending.
    return (lastAtMs = Math.max(lastAtMs, clumpAtMs + offsets.pop()!));
  };
}

// Poisson whose rate changes: the moments at which the expected number of calls so far reaches the sums of unit
// exponentials. Exact, and as fast where the rate is next to nothing for long.
function ramp(arrivals: Extract<Arrivals, { pattern: "ramp" }>, random: Random): () => number {
  const { fromPerMs, toPerMs } = rates(arrivals);
  const durationMs = of(arrivals, "durationMs");
  const steepness = (toPerMs - fromPerMs) / durationMs;
  const onRamp = ((fromPerMs + toPerMs) / 2) * durationMs;
  let expected = 0;
  return () => {
    expected += random.exponential(1);
    if (expected >= onRamp) return durationMs + (expected - onRamp) / toPerMs;
    // The root of fromPerMs · t + steepness · t² / 2 = expected, in the form that divides by no small difference.
    return (2 * expected) / (fromPerMs + Math.sqrt(fromPerMs * fromPerMs + 2 * steepness * expected));
  };
}

function step(arrivals: Extract<Arrivals, { pattern: "step" }>, random: Random): () => number {
  const { fromPerMs, toPerMs } = rates(arrivals);
  const stepAtMs = of(arrivals, "atMs");
  const before = fromPerMs * stepAtMs;
  let expected = 0;
  return () => {
    expected += random.exponential(1);
    return expected < before ? expected / fromPerMs : stepAtMs + (expected - before) / toPerMs;
  };
}

function surge(arrivals: Extract<Arrivals, { pattern: "surge" }>, random: Random): () => number {
  const perMs = of(arrivals, "ratePerS") / 1000;
  const surgePerMs = perMs * of(arrivals, "factor");
  const beginsAtMs = spanMs("atMs of arrivals", arrivals.atMs);
  const forMs = spanMs("forMs of arrivals", arrivals.forMs);
  const before = perMs * beginsAtMs;
  const during = surgePerMs * forMs;
  let expected = 0;
  return () => {
    expected += random.exponential(1);
    if (expected < before) return expected / perMs;
    if (expected < before + during) return beginsAtMs + (expected - before) / surgePerMs;
    return beginsAtMs + forMs + (expected - before - during) / perMs;
  };
}

function rates(arrivals: { readonly fromPerS: number; readonly toPerS: number }): {
  fromPerMs: number;
  toPerMs: number;
} {
  const fromPerS = notNegative("fromPerS of arrivals", arrivals.fromPerS);
  return { fromPerMs: fromPerS / 1000, toPerMs: of(arrivals, "toPerS") / 1000 };
}

function trace(atMs: ArrayLike<number>): () => number | undefined {
  let next = 0;
  let lastAtMs = 0;
  return () => {
    if (next === atMs.length) return undefined;
    const nextAtMs = within(
      `atMs[${next}] of a trace`,
      atMs[next++],
      (number) => number >= lastAtMs,
      `a number of milliseconds, not before the one before`,
    );
    return (lastAtMs = nextAtMs);
  };
}

const of = <T extends object, K extends keyof T & string>(arrivals: T, field: K): number =>
  positive(`${field} of arrivals`, arrivals[field]);
