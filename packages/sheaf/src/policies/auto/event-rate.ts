import { eventsRemembered, octaves } from "./constants.ts";

/**
 * How often something happens, per millisecond and unit waited for, by the time since it could first happen: events ÷
 * exposure in octaves from 1 µs. Constant for a Poisson stream, high at first for clumps and for callers who come back.
 */
export class EventRate {
  // Not typed arrays, which take longer to make: some batchers live for one request.
  readonly #events = new Array<number>(octaves).fill(0);
  readonly #exposure = new Array<number>(octaves).fill(0);
  #total = 0;

  /** `units` were waited for between these two moments after the start, in milliseconds. */
  expose(fromMs: number, toMs: number, units: number): void {
    for (let i = octaveOf(fromMs); fromMs < toMs; i++) {
      const endMs = i < octaves - 1 ? Math.min(toMs, octaveEndMs(i)) : toMs;
      this.#exposure[i]! += units * (endMs - fromMs);
      fromMs = endMs;
    }
  }

  happened(elapsedMs: number, times = 1): void {
    this.#events[octaveOf(elapsedMs)]! += times;
    this.#total += times;
    if (this.#total <= eventsRemembered) return;
    this.#total /= 2;
    for (let i = 0; i < octaves; i++) {
      this.#events[i]! /= 2;
      this.#exposure[i]! /= 2;
    }
  }

  /** The mean over the octaves first … last; 0 where nothing was seen. */
  between(first: number, last: number): number {
    let events = 0;
    let exposure = 0;
    for (let i = first; i <= last; i++) {
      events += this.#events[i]!;
      exposure += this.#exposure[i]!;
    }
    return events > 0 && exposure > 0 ? events / exposure : 0;
  }
}

/** Where octave `i` ends: 1 µs · 2^i, by a shift: a power takes 30 times as long, and a quiet arrival asks for a dozen. */
export const octaveEndMs = (i: number): number => (1 << i) / 1000;

export const octaveOf = (elapsedMs: number): number =>
  elapsedMs < 0.001 ? 0 : Math.min(octaves - 1, 32 - Math.clz32(Math.min(elapsedMs, 1e6) * 1000));
