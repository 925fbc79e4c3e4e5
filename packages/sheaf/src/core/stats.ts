import type { BatchRecord, DispatchReason } from "../policies/policy.ts";
import { advise } from "./advice.ts";
import type { BusyWatch } from "./busy.ts";
import { Histogram, type Distribution } from "./histogram.ts";
import { LineFit, type CostModel } from "./line-fit.ts";
import type { Cost } from "./options.ts";

/** A snapshot. Counts are since construction, distributions over the last 60 s, times in milliseconds. */
export interface BatcherStats {
  readonly name: string;
  /** Items waiting. */
  readonly queued: number;
  /** Batches in flight. */
  readonly inFlight: number;
  readonly items: {
    readonly ok: number;
    readonly error: number;
    readonly timeout: number;
    readonly aborted: number;
    readonly rejected: number;
  };
  readonly batches: number;
  /** Extra runs of bisections. */
  readonly bisectRuns: number;
  /** Runs given up after runTimeoutMs. */
  readonly abandonedRuns: number;
  readonly meanBatchSize: number;
  /** 0…1: mean of size / maxBatchSize or weight / maxBatchWeight, whichever is larger for the batch; 0 if unlimited. */
  readonly fillRate: number;
  /** Arrival → dispatch, mean of each batch. */
  readonly queueWaitMs: Distribution;
  /** Dispatch → results. */
  readonly runMs: Distribution;
  /** Arrival → settled, of every call whose batch ended. */
  readonly latencyMs: Distribution;
  /** Run time as a line through batch sizes; null before there are two sizes. */
  readonly costModel: CostModel | null;
  /** Items × median size-1 run time ÷ total run time; null before 20 size-1 runs. */
  readonly speedup: number | null;
  /** (τ0 + α)·n̄ ÷ (τ0 + α·n̄) of the cost model at the mean batch size n̄; null without a cost model. */
  readonly expectedSpeedup: number | null;
  /** In the unit of the `cost` option; null without it. */
  readonly cost: { readonly total: number; readonly perItem: number; readonly perItemUnbatched: number } | null;
  readonly reasons: Readonly<Partial<Record<DispatchReason, number>>>;
  readonly advice: readonly string[];
}

const singleRunsKept = 101;
const singleRunsNeeded = 20;

/** Everything statistical, derived from batch records. */
export class Statistics {
  readonly queueWaitMs: Histogram = new Histogram();
  readonly runMs: Histogram = new Histogram();
  readonly #maxBatchSize: number;
  readonly #maxBatchWeight: number;
  readonly #cost: Cost | undefined;
  readonly #fit: LineFit = new LineFit();
  readonly #reasons: Partial<Record<DispatchReason, number>> = {};
  readonly #singleRunsMs: number[] = [];
  #singleRuns = 0;
  #batches = 0;
  #items = 0;
  #weight = 0;
  #extraRuns = 0;
  #fillSum = 0;
  #okItems = 0;
  #okRunMs = 0;
  #runMs = 0;
  readonly #busy: BusyWatch | undefined;

  /** Without `busy` nothing is said of slots and CPU. */
  constructor(
    limits: { readonly maxBatchSize: number; readonly maxBatchWeight: number },
    cost: Cost | undefined,
    busy?: BusyWatch,
  ) {
    this.#maxBatchSize = limits.maxBatchSize;
    this.#maxBatchWeight = limits.maxBatchWeight;
    this.#cost = cost;
    this.#busy = busy;
  }

  observe({ reason, size, weight, startedAtMs, queueWaitMs, runMs, outcome }: BatchRecord): void {
    this.#batches++;
    this.#items += size;
    this.#weight += weight;
    this.#fillSum += Math.max(size / this.#maxBatchSize, weight / this.#maxBatchWeight);
    this.#reasons[reason] = (this.#reasons[reason] ?? 0) + 1;
    this.queueWaitMs.record(startedAtMs, queueWaitMs.mean);
    this.runMs.record(startedAtMs + runMs, runMs);
    this.#runMs += runMs;
    if (outcome === "error") return;
    this.#okItems += size;
    this.#okRunMs += runMs;
    this.#fit.observe(size, runMs);
    if (size === 1) this.#singleRunsMs[this.#singleRuns++ % singleRunsKept] = runMs;
  }

  ranAgain(): void {
    this.#extraRuns++;
  }

  /** The part of a snapshot that comes from batches. */
  snapshot(
    nowMs: number,
  ): Omit<BatcherStats, "name" | "queued" | "inFlight" | "items" | "abandonedRuns" | "latencyMs"> {
    const meanBatchSize = this.#batches === 0 ? 0 : this.#items / this.#batches;
    const costModel = this.#fit.model();
    const derived = {
      batches: this.#batches,
      bisectRuns: this.#extraRuns,
      meanBatchSize,
      fillRate: this.#batches === 0 ? 0 : this.#fillSum / this.#batches,
      queueWaitMs: this.queueWaitMs.distribution(nowMs),
      runMs: this.runMs.distribution(nowMs),
      costModel,
      speedup: this.#speedup(),
      expectedSpeedup: costModel === null ? null : expectedSpeedup(costModel, meanBatchSize),
      cost: this.#costs(),
      reasons: { ...this.#reasons },
    };
    return { ...derived, advice: advise({ ...derived, busy: this.#busy?.look(this.#runMs) ?? null }) };
  }

  #speedup(): number | null {
    if (this.#singleRuns < singleRunsNeeded || this.#okRunMs === 0) return null;
    const sorted = this.#singleRunsMs.toSorted((a, b) => a - b);
    return (this.#okItems * sorted[sorted.length >> 1]!) / this.#okRunMs;
  }

  #costs(): BatcherStats["cost"] {
    if (this.#cost === undefined) return null;
    const { perRun = 0, perItem = 0, perWeight = 0 } = this.#cost;
    const ofItems = this.#items * perItem + this.#weight * perWeight;
    const total = (this.#batches + this.#extraRuns) * perRun + ofItems;
    if (this.#items === 0) return { total, perItem: 0, perItemUnbatched: 0 };
    return { total, perItem: total / this.#items, perItemUnbatched: perRun + ofItems / this.#items };
  }
}

function expectedSpeedup({ fixedMs, perItemMs }: CostModel, size: number): number | null {
  const batchedMs = fixedMs + perItemMs * size;
  return batchedMs > 0 ? ((fixedMs + perItemMs) * size) / batchedMs : null;
}
