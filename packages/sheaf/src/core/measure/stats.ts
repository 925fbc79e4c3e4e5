import type { BatchRecord, DispatchReason } from "../../policies/policy.ts";
import { RollingHistogram } from "./histogram.ts";
import type { LearnedCost } from "./learned-cost.ts";
import type { Price } from "../contract/options.ts";
import type { BatcherStats, LanesStats, TenantStats } from "../contract/stats.ts";

/** Of a batcher whose statistics these are. */
interface Limits {
  readonly maxBatchSize: number;
  readonly maxBatchWeight?: number | undefined;
  readonly price?: Price | undefined;
}

/** What its calls show. */
export interface Calls {
  /** Items so far, refused ones included. */
  readonly arrived: number;
  readonly tally: BatcherStats["items"];
  readonly latencyMs: LaneLatency;
  readonly lanes: { readonly live: TenantStats; readonly bulk: Omit<LanesStats["bulk"], "latencyMs"> };
}

/** Arrival → settled, of live calls and of bulk ones. */
export class LaneLatency {
  readonly live: RollingHistogram = new RollingHistogram();
  readonly bulk: RollingHistogram = new RollingHistogram();
}

/** Seconds of arrivals that are looked back on: a busy moment counts for a minute. */
const lookBack = 60;
/** How soon callers want their results: nine of ten have at least as long. Steps of −0.09 and +0.01 balance at 10 %. */
export class Due {
  /** 0 where none has a deadline. */
  withinMs = 0;

  /** One wants its result so long after its arrival. */
  learn(ms: number): void {
    if (ms === Infinity) return;
    if (this.withinMs === 0 || Math.abs(ms - this.withinMs) <= 0.01 * ms) this.withinMs = ms;
    else this.withinMs *= ms < this.withinMs ? 0.91 : 1.01;
  }
}

/** What is counted with each batch; `snapshotOf` puts it into figures. */
export class Statistics {
  readonly limits: Limits;
  readonly cost: LearnedCost;
  readonly calls: Calls;
  readonly queueWaitMs: RollingHistogram = new RollingHistogram();
  readonly runMs: RollingHistogram = new RollingHistogram();
  readonly reasons: Record<DispatchReason, number> = noReasons();
  batches: number = 0;
  items: number = 0;
  weight: number = 0;
  fillSum: number = 0;
  /** Of the first item of each batch. */
  readonly due: Due = new Due();
  readonly #throttle: { readonly maxWeight: number } | undefined;
  /** Arrivals until the beginning of each of the last seconds, a ring; made with the first batch. */
  #until: number[] | undefined;
  #firstSecond = 0;
  #countedAtMs = 0;
  #counted = 0;

  /** `throttle`: where batches have a weight. */
  constructor(limits: Limits, cost: LearnedCost, calls: Calls, throttle?: { readonly maxWeight: number }) {
    this.limits = limits;
    this.cost = cost;
    this.calls = calls;
    this.#throttle = throttle;
  }

  observe({ reason, size, weight, startedAtMs, queueWaitMs, runMs, outcome }: BatchRecord, nowMs: number): void {
    this.#countArrivals(nowMs);
    if (outcome === "refused") return;
    this.batches++;
    this.items += size;
    this.weight += weight;
    const { maxBatchSize, maxBatchWeight = Infinity } = this.limits;
    const mostWeight = Math.min(maxBatchWeight, this.#throttle?.maxWeight ?? Infinity);
    this.fillSum += Math.max(size / maxBatchSize, weight / mostWeight);
    this.reasons[reason]++;
    this.queueWaitMs.record(startedAtMs, queueWaitMs.mean);
    this.runMs.record(startedAtMs + runMs, runMs);
  }

  #countArrivals(nowMs: number): void {
    const { arrived } = this.calls;
    if (this.#until === undefined) {
      this.#until = [];
      this.#firstSecond = Math.floor(nowMs / 1000) + 1;
    } else {
      const first = Math.max(Math.floor(this.#countedAtMs / 1000), Math.floor(nowMs / 1000) - lookBack - 1) + 1;
      for (let second = first; second * 1000 <= nowMs; second++) {
        // Nothing is known of the time between: they came evenly.
        const share = (second * 1000 - this.#countedAtMs) / (nowMs - this.#countedAtMs);
        this.#until[second % (lookBack + 2)] = this.#counted + share * (arrived - this.#counted);
      }
    }
    this.#countedAtMs = nowMs;
    this.#counted = arrived;
  }

  /** Arrivals in each of the last whole seconds; none before the first batch. */
  arrivals(nowMs: number): number[] {
    if (this.#until === undefined) return [];
    this.#countArrivals(nowMs);
    const until = this.#until;
    const last = Math.floor(nowMs / 1000);
    const first = Math.max(this.#firstSecond, last - lookBack);
    return Array.from(
      { length: Math.max(0, last - first) },
      (_, at) => until[(first + at + 1) % (lookBack + 2)]! - until[(first + at) % (lookBack + 2)]!,
    );
  }
}

/** Every dispatch reason, with a count of 0. */
export const noReasons = (): Record<DispatchReason, number> => ({
  full: 0,
  idle: 0,
  hold: 0,
  window: 0,
  flush: 0,
  drain: 0,
  immediate: 0,
  weight: 0,
});
