import type { Random } from "./random.ts";

/**
 * When calls come in a simulation. Rates are means over the whole pattern; lengths marked "mean" are exponential.
 * - poisson: independent callers;
 * - periodic: one every 1 / rate;
 * - burst: poisson at a high rate for onMs (mean), nothing for offMs (mean);
 * - clump: `size` calls (default 16) spread over spreadMs (default 0.3), clumps poisson: the fan-out of one request;
 * - ramp, step: poisson at a rate that moves from fromPerS to toPerS over durationMs, or at atMs;
 * - closed: `clients`, each of which calls again thinkMs (mean, default 0) after its answer;
 * - trace: recorded moments, ascending.
 */
export type Arrivals =
  | { readonly pattern: "poisson" | "periodic"; readonly ratePerS: number }
  | { readonly pattern: "burst"; readonly ratePerS: number; readonly onMs: number; readonly offMs: number }
  | {
      readonly pattern: "clump";
      readonly ratePerS: number;
      readonly size?: number | undefined;
      readonly spreadMs?: number | undefined;
    }
  | { readonly pattern: "ramp"; readonly fromPerS: number; readonly toPerS: number; readonly durationMs: number }
  | { readonly pattern: "step"; readonly fromPerS: number; readonly toPerS: number; readonly atMs: number }
  | { readonly pattern: "closed"; readonly clients: number; readonly thinkMs?: number | undefined }
  | { readonly pattern: "trace"; readonly atMs: readonly number[] };

export type OpenArrivals = Exclude<Arrivals, { pattern: "closed" }>;

/** The moments of an open pattern, one after the other, ascending; `undefined` when a trace is at its end. */
export function momentsOf(arrivals: OpenArrivals, random: Random): () => number | undefined {
  switch (arrivals.pattern) {
    case "poisson": {
      const gapMs = 1000 / positive(arrivals, "ratePerS");
      let atMs = 0;
      return () => (atMs += random.exponential(gapMs));
    }
    case "periodic": {
      const gapMs = 1000 / positive(arrivals, "ratePerS");
      let count = 0;
      return () => count++ * gapMs;
    }
    case "burst":
      return bursts(arrivals, random);
    case "clump":
      return clumps(arrivals, random);
    case "ramp": {
      const { fromPerS, toPerS } = arrivals;
      const durationMs = positive(arrivals, "durationMs");
      return thinned(
        fromPerS,
        toPerS,
        (atMs) => fromPerS + (toPerS - fromPerS) * Math.min(1, atMs / durationMs),
        random,
      );
    }
    case "step": {
      const { fromPerS, toPerS } = arrivals;
      const stepAtMs = positive(arrivals, "atMs");
      return thinned(fromPerS, toPerS, (atMs) => (atMs < stepAtMs ? fromPerS : toPerS), random);
    }
    case "trace": {
      let next = 0;
      return () => arrivals.atMs[next++];
    }
  }
}

function bursts(arrivals: Extract<Arrivals, { pattern: "burst" }>, random: Random): () => number {
  const onMs = positive(arrivals, "onMs");
  const offMs = positive(arrivals, "offMs");
  const gapMs = ((1000 / positive(arrivals, "ratePerS")) * onMs) / (onMs + offMs);
  let atMs = 0;
  let endsAtMs = random.exponential(onMs);
  return () => {
    let nextMs = atMs + random.exponential(gapMs);
    while (nextMs > endsAtMs) {
      // What is left of the gap goes on in the next burst: a poisson stream has no memory.
      const startsAtMs = endsAtMs + random.exponential(offMs);
      nextMs += startsAtMs - endsAtMs;
      endsAtMs = startsAtMs + random.exponential(onMs);
    }
    return (atMs = nextMs);
  };
}

function clumps(arrivals: Extract<Arrivals, { pattern: "clump" }>, random: Random): () => number {
  const { size = 16, spreadMs = 0.3 } = arrivals;
  if (!(Number.isInteger(size) && size >= 1))
    throw new RangeError(`size of a clump must be an integer >= 1, got ${size}`);
  const gapMs = (1000 * size) / positive(arrivals, "ratePerS");
  let clumpAtMs = 0;
  let offsets: number[] = [];
  let lastMs = 0;
  return () => {
    if (offsets.length === 0) {
      clumpAtMs += random.exponential(gapMs);
      offsets = Array.from({ length: size }, () => random.uniform() * spreadMs).sort((a, b) => b - a);
    }
    // Two clumps may overlap: moments stay ascending.
    return (lastMs = Math.max(lastMs, clumpAtMs + offsets.pop()!));
  };
}

// Poisson with a rate that changes: candidates at the highest rate, kept with the share that the rate has of it.
function thinned(fromPerS: number, toPerS: number, rateAt: (atMs: number) => number, random: Random): () => number {
  const highest = Math.max(fromPerS, toPerS);
  if (!(fromPerS >= 0 && toPerS > 0 && highest < Infinity)) {
    throw new RangeError(`fromPerS must be >= 0 and toPerS > 0, got ${fromPerS} and ${toPerS}`);
  }
  let atMs = 0;
  return () => {
    do atMs += random.exponential(1000 / highest);
    while (random.uniform() * highest > rateAt(atMs));
    return atMs;
  };
}

function positive<T extends object, K extends keyof T & string>(arrivals: T, field: K): number {
  const value: unknown = arrivals[field];
  if (typeof value === "number" && value > 0 && value < Infinity) return value;
  throw new RangeError(`${field} of arrivals must be a number > 0, got ${String(value)}`);
}
