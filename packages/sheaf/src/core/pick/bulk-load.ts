/** Looks that are remembered. */
const looksKept = 64;
/** Looks in which a backlog that has grown should have gone again: one that has not only lasts. */
const patience = 256;
/** More arrivals than this many times what can be served: no size of runs keeps up. Less may be chance. */
const beyond = 1.1;
/** More bulk calls than this many times what can be served meanwhile came at once, and are no stream. */
const lump = 2;
/** A backlog has grown by more than a full batch of every slot, and by so many standard deviations of what arrives meanwhile. */
const deviations = 1.5;
/** From look to look, while the backlog does not grow: callers who come back once they are answered never let it end. */
const easing = 0.99;

/** Counts since the batcher was made, but `bulkWaiting`, of now. */
export interface BulkCounts {
  readonly arrived: number;
  readonly bulkArrived: number;
  readonly bulkWaiting: number;
}

/**
 * How much of the full rate serves live and bulk arrivals together. By their rate alone it cannot be told: callers who come back when
 * they are answered come as fast as they are served. So the rate falls until the backlog grows, and is full until that has
 * gone again. Where more comes than can be served, and where a backlog only lasts, none is needed.
 */
export class BulkLoad {
  /** 0 … 1. */
  share = 0;
  readonly #spans: { readonly ms: number; readonly arrived: number }[] = [];
  #atMs = 0;
  #before: BulkCounts | undefined;
  /** The smallest backlog so far, and looks since. */
  #lowestBacklog = Infinity;
  #looksSinceLowest = 0;
  /** Looks since the backlog has grown from there; 0 while it has not. */
  #looksBehind = 0;

  /** `fullPerMs`: items that full runs serve; `places`: items of a full batch of every slot. */
  look(nowMs: number, counts: BulkCounts, fullPerMs: number, places: number): void {
    const before = this.#before;
    const ms = nowMs - this.#atMs;
    this.#atMs = nowMs;
    this.#before = counts;
    if (before === undefined || ms <= 0) return;
    const arrived = counts.arrived - before.arrived;
    const isLump = counts.bulkArrived - before.bulkArrived > lump * fullPerMs * ms;
    if (isLump) this.#lowestBacklog += counts.bulkWaiting - before.bulkWaiting;
    else if (this.#spans.push({ ms, arrived }) > looksKept) this.#spans.shift();
    this.#looksSinceLowest++;
    if (counts.bulkWaiting <= this.#lowestBacklog) this.#settle(counts.bulkWaiting);
    const grown = counts.bulkWaiting - this.#lowestBacklog;
    const { perMs, variance } = this.#arrivals();
    if (this.#looksBehind > 0 || grown > places + deviations * Math.sqrt(variance * this.#looksSinceLowest))
      this.#looksBehind++;
    if (this.#looksBehind > patience) this.#settle(counts.bulkWaiting);
    this.share = perMs > beyond * fullPerMs ? 0 : this.#looksBehind > 0 ? 1 : easing * this.share;
  }

  #settle(waiting: number): void {
    this.#lowestBacklog = waiting;
    this.#looksSinceLowest = this.#looksBehind = 0;
  }

  /** How fast they come, and the variance of their number from look to look. */
  #arrivals(): { readonly perMs: number; readonly variance: number } {
    let ms = 0;
    let sum = 0;
    let squares = 0;
    for (const span of this.#spans) {
      ms += span.ms;
      sum += span.arrived;
      squares += span.arrived ** 2;
    }
    if (ms === 0) return { perMs: 0, variance: 0 };
    const mean = sum / this.#spans.length;
    // At least that of a Poisson stream: a few looks may be alike by chance.
    return { perMs: sum / ms, variance: Math.max(mean, squares / this.#spans.length - mean ** 2) };
  }
}
