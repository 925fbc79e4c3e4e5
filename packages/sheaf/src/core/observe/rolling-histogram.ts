import type { Distribution } from "../contract/stats.ts";
import { Histogram } from "./histogram.ts";

const perOctave = 8;
const slices = 6;
const sliceMs = 10_000;

/** Durations of the last 60 s, in slices of 10 s of which the oldest is dropped. */
export class RollingHistogram {
  /** Newest first; made when something falls into it: a batcher that lives for one request needs only one. */
  readonly #slices: (Histogram | undefined)[] = new Array<undefined>(slices);
  /** Of the newest. */
  #endMs = -Infinity;

  record(nowMs: number, durationMs: number, times?: number): void {
    this.#advance(nowMs);
    (this.#slices[0] ??= new Histogram(perOctave)).record(durationMs, times);
  }

  distribution(nowMs: number): Distribution {
    this.#advance(nowMs);
    const all = new Histogram(perOctave);
    for (const slice of this.#slices) if (slice) all.add(slice);
    return { p50: all.quantile(0.5), p95: all.quantile(0.95), p99: all.quantile(0.99), max: all.max };
  }

  /** Makes room for the slices that have begun. */
  #advance(nowMs: number): void {
    if (nowMs < this.#endMs) return;
    const endMs = (Math.floor(nowMs / sliceMs) + 1) * sliceMs;
    const begun = (endMs - this.#endMs) / sliceMs;
    this.#slices.copyWithin(begun, 0).fill(undefined, 0, begun);
    this.#endMs = endMs;
  }
}
