const bucketsPerOctave = 128;
const smallestMs = 0.001;
const octaves = 30; // up to 1,073 s
const bucketCount = octaves * bucketsPerOctave + 1;

/**
 * Durations in milliseconds in logarithmic buckets: every value between 1 µs and 1000 s is kept to within 0.3 %, in
 * constant memory and without allocation. Smaller and larger values count in the first and last bucket.
 */
export class Histogram {
  readonly #counts = new Float64Array(bucketCount);
  #count = 0;
  #sum = 0;
  #max = 0;

  get count(): number {
    return this.#count;
  }

  /** 0 without data, like every figure here. */
  get mean(): number {
    return this.#count === 0 ? 0 : this.#sum / this.#count;
  }

  get max(): number {
    return this.#max;
  }

  /** Counts `ms` as `times` values. */
  record(ms: number, times: number = 1): void {
    const bucket = ms <= smallestMs ? 0 : Math.ceil(Math.log2(ms / smallestMs) * bucketsPerOctave);
    const index = Math.min(bucket, bucketCount - 1);
    this.#counts[index] = this.#counts[index]! + times;
    this.#count += times;
    this.#sum += ms * times;
    if (ms > this.#max) this.#max = ms;
  }

  add(other: Histogram): void {
    for (let i = 0; i < bucketCount; i++) this.#counts[i] = this.#counts[i]! + other.#counts[i]!;
    this.#count += other.#count;
    this.#sum += other.#sum;
    this.#max = Math.max(this.#max, other.#max);
  }

  /** The smallest value that a share `quantile` (0…1) of all values does not exceed; the geometric middle of its bucket. */
  quantile(quantile: number): number {
    if (this.#count === 0) return 0;
    const rank = Math.max(1, Math.ceil(quantile * this.#count));
    if (rank >= this.#count) return this.#max;
    let seen = 0;
    let bucket = 0;
    while ((seen += this.#counts[bucket]!) < rank) bucket++;
    return Math.min(this.#max, smallestMs * 2 ** ((bucket - 0.5) / bucketsPerOctave));
  }
}
