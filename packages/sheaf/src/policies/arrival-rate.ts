/**
 * Arrivals per millisecond: an exponentially decayed count over `windowMs`, which follows what it is told to span.
 * Cold, it divides by the time it has watched, not by the window.
 */
export class ArrivalRate {
  /** Arrivals so far. */
  count = 0;
  lastAtMs = 0;

  #firstAtMs = 0;
  #decayed = 0;
  #windowMs = 100;
  // Mean gap over about the last 128 arrivals: how long 16 arrivals take.
  #meanGapMs = 0;
  // A decision asks up to three times.
  #askedAtMs = Number.NaN;
  #perMs = 0;

  /** @returns milliseconds since the arrivals before these; 0 for the first. */
  arrived(nowMs: number, arrivals: number): number {
    const gapMs = this.count === 0 ? 0 : Math.max(0, nowMs - this.lastAtMs);
    this.#askedAtMs = Number.NaN;
    if (this.count === 0) this.#firstAtMs = nowMs;
    else {
      const share = Math.min(1, arrivals / Math.min(this.count, 128));
      // Longer gaps count as 5 s ÷ 16: one silent night must not blind it to the morning.
      this.#meanGapMs += share * (Math.min(gapMs / arrivals, 312) - this.#meanGapMs);
    }
    if (gapMs > 0) this.#decayed *= Math.exp(-gapMs / this.#windowMs);
    this.#decayed += arrivals;
    this.count += arrivals;
    this.lastAtMs = nowMs;
    return gapMs;
  }

  /** Averages over `spanMs` or 16 arrivals, whichever is longer, at most 5 s; gets there by steps of a fifth. */
  spanAtLeast(spanMs: number): void {
    const wantedMs = Math.max(spanMs, this.#meanGapMs > 0 ? Math.min(16 * this.#meanGapMs, 5000) : 5000);
    const change = Math.min(1.2, Math.max(0.8, wantedMs / this.#windowMs));
    if (!(change > 0)) return;
    this.#askedAtMs = Number.NaN;
    this.#decayed *= change;
    this.#windowMs *= change;
  }

  perMs(nowMs: number): number {
    if (nowMs === this.#askedAtMs) return this.#perMs;
    const watched = Math.min(1, 0.05 + (nowMs - this.#firstAtMs) / this.#windowMs);
    this.#askedAtMs = nowMs;
    this.#perMs = (this.#decayed * Math.exp((this.lastAtMs - nowMs) / this.#windowMs)) / (this.#windowMs * watched);
    return this.#perMs;
  }
}

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
    if (this.#total <= 512) return;
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

const octaves = 24;
/** Where octave `i` ends: 1 µs · 2^i. */
export const octaveEndMs = (i: number): number => 2 ** i / 1000;

export const octaveOf = (elapsedMs: number): number =>
  elapsedMs < 0.001 ? 0 : Math.min(octaves - 1, 32 - Math.clz32(Math.min(elapsedMs, 1e6) * 1000));
