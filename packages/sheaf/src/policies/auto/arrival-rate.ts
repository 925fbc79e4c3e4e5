import {
  arrivalsSpanned,
  firstWindowMs,
  gapsAveraged,
  minWatched,
  longestGapMs,
  longestWindowMs,
  windowStepDown,
  windowStepUp,
} from "./constants.ts";

/**
 * Arrivals per millisecond: an exponentially decayed count over `windowMs`, which `spanAtLeast` changes.
 * Cold, it divides by the time it has watched, not by the window.
 */
export class ArrivalRate {
  #count = 0;
  #lastAtMs = 0;
  #firstAtMs = 0;
  #decayed = 0;
  #windowMs = firstWindowMs;
  // Mean gap over about the last 128 arrivals: how long 16 arrivals take.
  #meanGapMs = 0;
  // A decision asks up to three times.
  #askedAtMs = NaN;
  #perMs = 0;

  /** @returns milliseconds since the arrivals before these; 0 for the first. */
  arrived(nowMs: number, arrivals: number): number {
    const gapMs = this.#count === 0 ? 0 : Math.max(0, nowMs - this.#lastAtMs);
    this.#askedAtMs = NaN;
    if (this.#count === 0) this.#firstAtMs = nowMs;
    else {
      const share = Math.min(1, arrivals / Math.min(this.#count, gapsAveraged));
      // Longer gaps count as 5 s ÷ 16: one silent night must not blind it to the morning.
      this.#meanGapMs += share * (Math.min(gapMs / arrivals, longestGapMs) - this.#meanGapMs);
    }
    if (gapMs > 0) this.#decayed *= Math.exp(-gapMs / this.#windowMs);
    this.#decayed += arrivals;
    this.#count += arrivals;
    this.#lastAtMs = nowMs;
    return gapMs;
  }

  /** Averages over `spanMs` or 16 arrivals, whichever is longer, at most 5 s; gets there by steps of a fifth. */
  spanAtLeast(spanMs: number): void {
    const arrivalsMs = arrivalsSpanned * (this.#meanGapMs || Infinity);
    const wantedMs = Math.max(spanMs, Math.min(arrivalsMs, longestWindowMs));
    const change = Math.min(windowStepUp, Math.max(windowStepDown, wantedMs / this.#windowMs));
    if (!(change > 0)) return;
    this.#askedAtMs = NaN;
    this.#decayed *= change;
    this.#windowMs *= change;
  }

  perMs(nowMs: number): number {
    if (nowMs === this.#askedAtMs) return this.#perMs;
    const watched = Math.min(1, minWatched + (nowMs - this.#firstAtMs) / this.#windowMs);
    this.#askedAtMs = nowMs;
    this.#perMs = (this.#decayed * Math.exp((this.#lastAtMs - nowMs) / this.#windowMs)) / (this.#windowMs * watched);
    return this.#perMs;
  }
}
