import type { CostModel } from "../../policies/cost-model.ts";
import type { SlotsNeeded } from "../contract/stats.ts";
import { slotsFor } from "./slots-for.ts";

/** Seconds looked back on: a busy moment counts for a minute. */
const lookBack = 60;
/** Their busiest stretch counts: one second alone may be busy by chance, and a minute hides a burst. */
const stretch = 5;
const fewestArrivals = 30;
const fewestRuns = 30;
/** Tracks the 10th percentile: steps of −0.09 and +0.01 balance at 10 %. */
const fall = 0.09;
const rise = 0.01;

/** The load of a batcher: arrivals by second, and how soon callers want their results. */
export class Demand {
  /** Arrivals until the beginning of each of the last seconds, a ring; made with the first batch. */
  #until: number[] | undefined;
  #firstSecond = 0;
  #atMs = 0;
  #arrived = 0;
  #withinMs = 0;

  readonly #calls: { readonly arrived: number };

  /** `calls`: how many items have arrived since the start. */
  constructor(calls: { readonly arrived: number }) {
    this.#calls = calls;
  }

  observe(_: unknown, nowMs: number): void {
    const total = this.#calls.arrived;
    if (this.#until === undefined) {
      this.#until = [];
      this.#firstSecond = Math.floor(nowMs / 1000) + 1;
      this.#atMs = nowMs;
      this.#arrived = total;
      return;
    }
    const first = Math.max(Math.floor(this.#atMs / 1000), Math.floor(nowMs / 1000) - lookBack - 1) + 1;
    for (let second = first; second * 1000 <= nowMs; second++) {
      // Nothing is known of the time between: they came evenly.
      const share = (second * 1000 - this.#atMs) / (nowMs - this.#atMs);
      this.#until[second % (lookBack + 2)] = this.#arrived + share * (total - this.#arrived);
    }
    this.#atMs = nowMs;
    this.#arrived = total;
  }

  /** The first item of a batch wants its result so long after its arrival. */
  due(withinMs: number): void {
    if (this.#withinMs === 0 || Math.abs(withinMs - this.#withinMs) <= rise * withinMs) this.#withinMs = withinMs;
    else this.#withinMs *= withinMs < this.#withinMs ? 1 - fall : 1 + rise;
  }

  /** Null while too little is known, where calls have no deadline, and where one item alone takes longer than it. */
  slotsNeeded(nowMs: number, cost: CostModel, maxBatchSize: number): SlotsNeeded | null {
    if (this.#until !== undefined) this.observe(undefined, nowMs);
    const counts = this.#counts();
    const seconds = counts.length;
    const sum = sumOf(counts);
    if (seconds < stretch || sum < fewestArrivals || cost.batches < fewestRuns || this.#withinMs === 0) return null;
    const busiest = Math.max(...counts.slice(stretch - 1).map((_, at) => sumOf(counts.slice(at, at + stretch))));
    const withinMs = this.#withinMs;
    const slotsAt = (perS: number): number => slotsFor(cost, { perMs: perS / 1000, withinMs, maxBatchSize });
    const slots = slotsAt(busiest / stretch);
    if (slots === Infinity) return null;
    return {
      slots,
      low: slotsAt(sum / seconds),
      high: slotsAt(Math.max(...counts)),
      arrivedPerS: busiest / stretch,
      withinMs,
    };
  }

  /** Arrivals in each of the last whole seconds. */
  #counts(): number[] {
    const until = this.#until ?? [];
    const last = Math.floor(this.#atMs / 1000);
    const first = Math.max(this.#firstSecond, last - lookBack);
    return Array.from(
      { length: Math.max(0, last - first) },
      (_, at) => until[(first + at + 1) % (lookBack + 2)]! - until[(first + at) % (lookBack + 2)]!,
    );
  }
}

const sumOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0);
