// Whole microseconds up to 8, then eight buckets an octave: a quantile is right within 7 %. 1 µs to 35 minutes.
const bucketCount = 8 + 28 * 8;
const mostUs = 2 ** 31 - 1;
/** A copy of this is made in a quarter of the time that a typed array of the size takes. */
const none: readonly number[] = new Array<number>(bucketCount).fill(0);
const slices = 6;
const sliceMs = 10_000;

/** Quantiles in milliseconds over the last 60 s; 0 without data. */
export interface Distribution {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

/**
 * Durations of the last 60 s in logarithmic buckets, in slices of 10 s of which the oldest is dropped. Recording costs
 * some integer arithmetic and an increment.
 */
export class Histogram {
  /** By slice, made when something falls into it: a batcher that lives for one request has need of one. */
  readonly #counts: (number[] | undefined)[] = [];
  readonly #maxima: number[] = [0, 0, 0, 0, 0, 0];
  #slice: number | undefined = undefined; // number of the current slice since time 0
  #sliceEndMs = -Infinity;

  record(nowMs: number, durationMs: number, times: number = 1): void {
    const slot = nowMs < this.#sliceEndMs ? slotOf(this.#slice!) : this.#slotAt(nowMs);
    const counts = (this.#counts[slot] ??= none.slice());
    counts[bucketOf(durationMs)]! += times;
    if (durationMs > this.#maxima[slot]!) this.#maxima[slot] = durationMs;
  }

  distribution(nowMs: number): Distribution {
    this.#slotAt(nowMs);
    const total = new Float64Array(bucketCount);
    for (const counts of this.#counts) counts?.forEach((count, bucket) => (total[bucket]! += count));
    const count = total.reduce((sum, bucket) => sum + bucket, 0);
    const max = Math.max(0, ...this.#maxima);
    const quantile = (rank: number): number => {
      let below = 0;
      for (let bucket = 0; bucket < bucketCount; bucket++) {
        below += total[bucket]!;
        if (count > 0 && below >= rank * count) return Math.min(max, middleOf(bucket));
      }
      return 0;
    };
    return { p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99), max };
  }

  /** Brings the ring up to `nowMs`, emptying the slices that have passed. */
  #slotAt(nowMs: number): number {
    const slice = Math.floor(nowMs / sliceMs);
    this.#slice ??= slice;
    for (let passed = Math.max(this.#slice, slice - slices) + 1; passed <= slice; passed++) {
      this.#counts[slotOf(passed)]?.fill(0);
      this.#maxima[slotOf(passed)] = 0;
    }
    if (slice > this.#slice) this.#slice = slice;
    this.#sliceEndMs = (this.#slice + 1) * sliceMs;
    return slotOf(this.#slice);
  }
}

/** A clock may start before 0: the remainder of a negative number is negative. */
const slotOf = (slice: number): number => ((slice % slices) + slices) % slices;

function bucketOf(durationMs: number): number {
  const us = durationMs * 1000;
  if (!(us >= 8)) return us > 0 ? us | 0 : 0;
  const whole = us < mostUs ? us | 0 : mostUs;
  const octave = 31 - Math.clz32(whole);
  return 8 + 8 * (octave - 3) + ((whole >> (octave - 3)) & 7);
}

function middleOf(bucket: number): number {
  if (bucket < 8) return (bucket + 0.5) / 1000;
  const eighth = 2 ** ((bucket - 8) >> 3);
  return ((8 + ((bucket - 8) & 7) + 0.5) * eighth) / 1000;
}
