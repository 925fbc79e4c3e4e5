const bucketsPerOctave = 8; // 9 % wide
const lowestMs = 0.001;
const octaves = 32; // 1 µs to 71 minutes
const bucketCount = octaves * bucketsPerOctave;
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
 * Durations of the last 60 s in logarithmic buckets, in slices of 10 s of which the oldest is dropped. Recording costs a
 * logarithm and an increment; a quantile is exact to the width of its bucket.
 */
export class Histogram {
  readonly #counts: Uint32Array[] = [];
  readonly #maxima: number[] = [];
  #slice = 0; // number of the current slice since time 0

  record(nowMs: number, durationMs: number, times: number = 1): void {
    const slot = this.#slotAt(nowMs);
    this.#counts[slot]![bucketOf(durationMs)]! += times;
    if (durationMs > this.#maxima[slot]!) this.#maxima[slot] = durationMs;
  }

  distribution(nowMs: number): Distribution {
    this.#slotAt(nowMs);
    const total = new Float64Array(bucketCount);
    for (const counts of this.#counts) counts.forEach((count, bucket) => (total[bucket]! += count));
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
    if (this.#counts.length === 0) {
      for (let i = 0; i < slices; i++) this.#counts.push(new Uint32Array(bucketCount));
      this.#maxima.push(...new Array<number>(slices).fill(0));
      this.#slice = slice;
    }
    for (let passed = Math.max(this.#slice, slice - slices) + 1; passed <= slice; passed++) {
      this.#counts[passed % slices]!.fill(0);
      this.#maxima[passed % slices] = 0;
    }
    if (slice > this.#slice) this.#slice = slice;
    return this.#slice % slices;
  }
}

function bucketOf(durationMs: number): number {
  if (!(durationMs > lowestMs)) return 0;
  return Math.min(bucketCount - 1, Math.floor(Math.log2(durationMs / lowestMs) * bucketsPerOctave));
}

function middleOf(bucket: number): number {
  return lowestMs * 2 ** ((bucket + 0.5) / bucketsPerOctave);
}
