import type { MetricSample } from "./exposition.ts";

/** Upper bounds for times, in seconds: 0.5 ms to 30 s. */
export const secondsBuckets: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
];
/** Upper bounds for batch sizes. */
export const sizeBuckets: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/** A cumulative histogram in Prometheus' sense. Recording is a short scan and three additions. */
export class Buckets {
  readonly #bounds: readonly number[];
  readonly #counts: Float64Array;
  #sum = 0;
  #count = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length);
  }

  /** Counts `value` as `times` observations. */
  record(value: number, times: number = 1): void {
    this.#sum += value * times;
    this.#count += times;
    const bounds = this.#bounds;
    let bucket = 0;
    while (bucket < bounds.length && value > bounds[bucket]!) bucket++;
    if (bucket < bounds.length) this.#counts[bucket]! += times;
  }

  samples(labels: Readonly<Record<string, string>>): MetricSample[] {
    let below = 0;
    const buckets = this.#bounds.map((bound, index) => {
      below += this.#counts[index]!;
      return { suffix: "_bucket", labels: { ...labels, le: String(bound) }, value: below };
    });
    return [
      ...buckets,
      { suffix: "_bucket", labels: { ...labels, le: "+Inf" }, value: this.#count },
      { suffix: "_sum", labels, value: this.#sum },
      { suffix: "_count", labels, value: this.#count },
    ];
  }
}
