import type { BatchRecord, DispatchReason } from "../../policies/policy.ts";
import { advise, batchesNeeded } from "./advice.ts";
import { RollingHistogram } from "./histogram.ts";
import type { LearnedCost } from "./learned-cost.ts";
import type { Price } from "../contract/options.ts";
import type { BatcherStats, LaneStats, LanesStats, TenantStats, Verdict } from "../contract/stats.ts";
import { describe } from "../../shared/describe.ts";
import { warnOnce } from "../runtime/runtime.ts";

/** Of a batcher whose statistics these are. */
interface Limits {
  readonly maxBatchSize: number;
  readonly maxBatchWeight?: number | undefined;
  readonly price?: Price | undefined;
}

/** Arrival → settled, of live calls and of bulk ones. */
export class LaneLatency {
  readonly live: RollingHistogram = new RollingHistogram();
  readonly bulk: RollingHistogram = new RollingHistogram();
}

/** Everything statistical, derived from batch records. */
export class Statistics {
  readonly queueWaitMs: RollingHistogram = new RollingHistogram();
  readonly runMs: RollingHistogram = new RollingHistogram();
  readonly #limits: Limits;
  readonly #throttle: { readonly maxWeight: number } | undefined;
  readonly #learned: Pick<LearnedCost, "judgement">;
  readonly #reasons: Record<DispatchReason, number> = noReasons();
  #batches = 0;
  #items = 0;
  #weight = 0;
  #fillSum = 0;

  constructor(limits: Limits, learned: Pick<LearnedCost, "judgement">, throttle?: { readonly maxWeight: number }) {
    this.#limits = limits;
    this.#learned = learned;
    this.#throttle = throttle;
  }

  observe({ reason, size, weight, startedAtMs, queueWaitMs, runMs, outcome }: BatchRecord): void {
    if (outcome === "refused") return;
    this.#batches++;
    this.#items += size;
    this.#weight += weight;
    const { maxBatchSize, maxBatchWeight = Infinity } = this.#limits;
    const mostWeight = Math.min(maxBatchWeight, this.#throttle?.maxWeight ?? Infinity);
    this.#fillSum += Math.max(size / maxBatchSize, weight / mostWeight);
    this.#reasons[reason]++;
    this.queueWaitMs.record(startedAtMs, queueWaitMs.mean);
    this.runMs.record(startedAtMs + runMs, runMs);
  }

  /** `counts` and `calls` are the part of a snapshot that batch records do not tell. */
  snapshot(
    nowMs: number,
    counts: Pick<
      BatcherStats,
      | "name"
      | "queued"
      | "inFlight"
      | "concurrency"
      | "bisectRuns"
      | "abandonedRuns"
      | "hungRuns"
      | "rateLimit"
      | "pause"
      | "tenants"
    >,
    calls: {
      readonly tally: BatcherStats["items"];
      readonly latencyMs: LaneLatency;
      readonly lanes: { readonly live: TenantStats; readonly bulk: Omit<LanesStats["bulk"], "latencyMs"> };
    },
    overload: BatcherStats["overload"] = null,
    slotsNeeded: BatcherStats["slotsNeeded"] = null,
  ): BatcherStats {
    const judgement = this.#learned.judgement();
    const cameAlone = this.#batches >= batchesNeeded && this.#items === this.#batches;
    const derived = {
      batches: this.#batches,
      // Before the first batch a mean is NaN, hence 0.
      meanBatchSize: this.#items / this.#batches || 0,
      fillRate: this.#fillSum / this.#batches || 0,
      queueWaitMs: this.queueWaitMs.distribution(nowMs),
      runMs: this.runMs.distribution(nowMs),
      ...judgement,
      verdict: cameAlone ? nothingToBatch(judgement.verdict) : judgement.verdict,
      overload,
      slotsNeeded,
      cost: this.#costs(counts.bisectRuns),
      reasons: { ...this.#reasons },
    };
    const { live, bulk } = calls.lanes;
    const withLatency = <Lane extends TenantStats>(name: keyof LanesStats, lane: Lane): Lane & LaneStats => ({
      ...lane,
      latencyMs: calls.latencyMs[name].distribution(nowMs),
    });
    return {
      ...counts,
      items: { ...calls.tally },
      latencyMs: calls.latencyMs.live.distribution(nowMs, calls.latencyMs.bulk),
      lanes: isUsed(live) && isUsed(bulk) ? { live: withLatency("live", live), bulk: withLatency("bulk", bulk) } : null,
      ...derived,
      advice: advise(derived),
    };
  }

  #costs(bisectRuns: number): BatcherStats["cost"] {
    if (this.#limits.price === undefined) return null;
    const { perRun = 0, perItem = 0, perWeight = 0 } = this.#limits.price;
    const ofItems = this.#items * perItem + this.#weight * perWeight;
    const total = (this.#batches + bisectRuns) * perRun + ofItems;
    if (this.#items === 0) return { total, perItem: 0, perItemUnbatched: 0 };
    return { total, perItem: total / this.#items, perItemUnbatched: perRun + ofItems / this.#items };
  }
}

const isUsed = ({ queued, dispatched, rejected }: TenantStats): boolean => queued + dispatched + rejected > 0;

/** One size only: no number of runs would show what a batch gains. */
const nothingToBatch = (verdict: Verdict): Verdict => ({
  ...verdict,
  verdict: "nothing-to-batch",
  batchSize: 1,
  speedup: null,
  low: null,
  high: null,
  cause: null,
});

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

type Listener = (record: BatchRecord) => void;

/** The subscribers to the record of every batch. One that throws is reported once, and affects nothing. */
export class Subscribers {
  readonly #name: string;
  readonly #warn = warnOnce();
  readonly #listeners: Set<Listener> = new Set();

  constructor(name: string) {
    this.#name = name;
  }

  /** The same function may subscribe twice. Returns a function that ends it. */
  add(listener: Listener): () => void {
    if (typeof listener !== "function") throw new TypeError(`subscribe needs a function, got ${describe(listener)}`);
    const own: Listener = (record) => listener(record);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  observe(record: BatchRecord): void {
    if (this.#listeners.size === 0) return; // iterating over an empty set takes longer than this
    for (const listener of this.#listeners) {
      try {
        listener(record);
      } catch (error) {
        this.#warn(`${this.#name}: a subscriber threw; further errors of it are not reported.`, error);
      }
    }
  }
}
