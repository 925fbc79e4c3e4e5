import { check } from "../../shared/checks.ts";
import { notNegative, positive, share, spanMs, within } from "./checks.ts";
import type { Random } from "./random.ts";

/** Calls that follow the hours of a day, with bursts. */
export interface DayArrivals {
  readonly pattern: "day";
  /** Mean over the day, without the bursts. */
  readonly ratePerS: number;
  /** @default 86400000 */
  readonly lengthMs?: number | undefined;
  /**
   * 0 … 1: the rate is that much lower at the start and the end than its mean, and that much higher in the middle.
   * @default 0.7
   */
  readonly swing?: number | undefined;
  /**
   * At moments drawn at random: from `riseMs` on the rate is `factor` times that of the hour, until `forMs` after the start.
   * @default { count: 24, factor: 2, riseMs: 60000, forMs: 300000 }
   */
  readonly bursts?:
    { readonly count: number; readonly factor: number; readonly riseMs: number; readonly forMs: number } | undefined;
}

const maxBursts = 10_000;
const maxCallsOfDay = 1e7;
const defaultBursts = { count: 24, factor: 2, riseMs: 60_000, forMs: 300_000 };

interface Day {
  readonly perMs: number;
  readonly lengthMs: number;
  readonly swing: number;
  readonly bursts: { readonly count: number; readonly factor: number; readonly riseMs: number; readonly forMs: number };
}

/** @throws {TypeError | RangeError} for a day that makes no sense. */
function dayOf({ ratePerS, lengthMs = 86_400_000, swing = 0.7, bursts = defaultBursts }: DayArrivals): Day {
  check(typeof bursts === "object" && bursts !== null, "bursts of arrivals", "an object", bursts, TypeError);
  const isCount = (number: number): boolean => Number.isInteger(number) && number >= 0 && number <= maxBursts;
  return {
    perMs: positive("ratePerS of arrivals", ratePerS) / 1000,
    lengthMs: positive("lengthMs of arrivals", spanMs("lengthMs of arrivals", lengthMs)),
    swing: share("swing of arrivals", swing),
    bursts: {
      count: within("bursts.count of arrivals", bursts.count, isCount, `an integer, 0 to ${maxBursts}`),
      factor: within("bursts.factor of arrivals", bursts.factor, (number) => number >= 1, "a number >= 1"),
      riseMs: notNegative("bursts.riseMs of arrivals", bursts.riseMs),
      forMs: spanMs("bursts.forMs of arrivals", bursts.forMs),
    },
  };
}

/** As many calls as a day has at most, but by rare chance. */
export function callsOfDay(arrivals: DayArrivals): number {
  const { perMs, lengthMs, bursts } = dayOf(arrivals);
  // Bursts fall where the rate is up to twice its mean.
  const burstMs = 2 * bursts.count * bursts.forMs * (bursts.factor - 1);
  const calls = Math.ceil(1.05 * perMs * (lengthMs + burstMs) + 1000);
  check(calls <= maxCallsOfDay, "the calls of a day", `at most ${maxCallsOfDay}: lower ratePerS or lengthMs`, calls);
  return calls;
}

/** The moments of one day, ascending; undefined at its end. */
export function day(arrivals: DayArrivals, random: Random): () => number | undefined {
  const { perMs, lengthMs, swing, bursts } = dayOf(arrivals);
  const { count, factor, riseMs, forMs } = bursts;
  const startsAtMs = Array.from({ length: count }, () => random.uniform() * lengthMs).sort((a, b) => a - b);
  let first = 0;
  /** How many times the rate of the hour comes now. Bursts that overlap are one. */
  const timesAt = (atMs: number): number => {
    while (first < count && startsAtMs[first]! + forMs < atMs) first++;
    const sinceMs = first < count ? atMs - startsAtMs[first]! : -1;
    return sinceMs < 0 ? 1 : 1 + (factor - 1) * Math.min(1, riseMs === 0 ? 1 : sinceMs / riseMs);
  };
  const highest = perMs * (1 + swing) * factor;
  let atMs = 0;
  // Thinning: a Poisson stream of the highest rate, of which each call stays with the share that its moment has of it.
  return () => {
    for (;;) {
      atMs += random.exponential(1 / highest);
      if (atMs >= lengthMs) return undefined;
      const ofHour = perMs * (1 - swing * Math.cos((2 * Math.PI * atMs) / lengthMs));
      if (random.uniform() * highest < ofHour * timesAt(atMs)) return atMs;
    }
  };
}
