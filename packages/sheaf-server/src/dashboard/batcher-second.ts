import type { BatchRecord, BatcherStats } from "sheaf";
import { Histogram } from "sheaf/internal/metrics";
import { countsBy } from "../shared/stats-sum.ts";
import type { CacheFigures, DashboardBatcher } from "./observed.ts";

/** The work of one batcher in one second: a point of every chart. */
export interface BatcherSecond {
  readonly items: BatcherStats["items"];
  readonly batches: number;
  /** Arrival to result; null without a batch. Waits within a batch are taken as evenly spread up to the longest. */
  readonly latencyMs: { readonly p50: number; readonly p95: number; readonly p99: number } | null;
  /** Items waiting and batches running at its end. */
  readonly queued: number;
  readonly inFlight: number;
  /** Items of live calls and of bulk ones that went into a batch or were refused; null until both have come. */
  readonly lanes: Readonly<Record<"live" | "bulk", LaneSecond>> | null;
  /** Items looked for in its result cache; null without one. */
  readonly cache: CacheFigures | null;
  readonly batchedItems: number;
  /** [size, number of batches of this size]. */
  readonly sizes: readonly (readonly [number, number])[];
  readonly reasons: Readonly<Record<string, number>>;
  /** Why its batches held no more items. */
  readonly sizeReasons: Readonly<Record<string, number>>;
  /** Batches that failed, as a whole or in part, by code; `MODEL` where the error was not the batcher's. */
  readonly failures: Readonly<Record<string, number>>;
  /** Its last batches: items, reason, items that failed. */
  readonly recent: readonly (readonly [number, string, number])[];
}

type LaneSecond = Pick<LanesStats["live"], "dispatched" | "rejected">;
type LanesStats = NonNullable<BatcherStats["lanes"]>;

/** Points a batch adds to the latency distribution at most. */
const spreadOver = 8;
const recentKept = 24;

const noFigures: CacheFigures = { hits: 0, misses: 0, savedRuns: 0 };

/** A model that was loaded again has another cache, which counts from 0. */
function since(before: CacheFigures, { hits, misses, savedRuns }: CacheFigures): CacheFigures {
  const from = hits < before.hits || misses < before.misses ? noFigures : before;
  return { hits: hits - from.hits, misses: misses - from.misses, savedRuns: savedRuns - from.savedRuns };
}

/** Items that had gone before the first look, or that came back from a batch, are none of this second. */
const sinceLane = (before: LaneSecond | undefined, { dispatched, rejected }: LaneSecond): LaneSecond => ({
  dispatched: Math.max(0, dispatched - (before?.dispatched ?? dispatched)),
  rejected: Math.max(0, rejected - (before?.rejected ?? rejected)),
});

/** Gathers batch records, second by second. A record costs a microsecond or two, watched or not. */
export class SecondsOf {
  readonly #end: () => void;
  #latencyMs = new Histogram();
  #sizes = new Map<number, number>();
  #reasons: Record<string, number> = {};
  #sizeReasons: Record<string, number> = {};
  #failures: Record<string, number> = {};
  #recent: (readonly [number, string, number])[] = [];
  #batches = 0;
  #batchedItems = 0;
  #cacheBefore: CacheFigures = noFigures;
  #itemsBefore: BatcherStats["items"] | undefined;
  #lanesBefore: BatcherStats["lanes"] = null;

  constructor(batcher: DashboardBatcher) {
    this.#end = batcher.subscribe((record) => this.#observe(record));
  }

  close(): void {
    this.#end();
  }

  /** Ends the second: the figures since the last call. */
  take({ items, queued, inFlight, lanes }: BatcherStats, cache?: CacheFigures): BatcherSecond {
    const before = this.#itemsBefore;
    const latencyMs = this.#latencyMs;
    const second: BatcherSecond = {
      items: countsBy(items, (outcome) => items[outcome] - (before?.[outcome] ?? 0)),
      batches: this.#batches,
      latencyMs:
        this.#batches === 0
          ? null
          : { p50: latencyMs.quantile(0.5), p95: latencyMs.quantile(0.95), p99: latencyMs.quantile(0.99) },
      queued,
      inFlight,
      lanes: lanes && {
        live: sinceLane(this.#lanesBefore?.live, lanes.live),
        bulk: sinceLane(this.#lanesBefore?.bulk, lanes.bulk),
      },
      cache: cache === undefined ? null : since(this.#cacheBefore, cache),
      batchedItems: this.#batchedItems,
      sizes: [...this.#sizes],
      reasons: this.#reasons,
      sizeReasons: this.#sizeReasons,
      failures: this.#failures,
      recent: this.#recent,
    };
    this.#itemsBefore = items;
    this.#lanesBefore = lanes;
    this.#cacheBefore = cache === undefined ? noFigures : { ...cache };
    this.#reset();
    return second;
  }

  #reset(): void {
    if (this.#batches > 0) this.#latencyMs = new Histogram();
    this.#sizes = new Map();
    this.#reasons = {};
    this.#sizeReasons = {};
    this.#failures = {};
    this.#recent = [];
    this.#batches = this.#batchedItems = 0;
  }

  #observe({ size, reason, sizeReason, queueWaitMs, tookMs, outcome, failedItems, errorCode }: BatchRecord): void {
    this.#batches++;
    this.#batchedItems += size;
    this.#sizes.set(size, (this.#sizes.get(size) ?? 0) + 1);
    this.#reasons[reason] = (this.#reasons[reason] ?? 0) + 1;
    if (sizeReason !== undefined) this.#sizeReasons[sizeReason] = (this.#sizeReasons[sizeReason] ?? 0) + 1;
    if (outcome === "error" || outcome === "partial")
      this.#failures[errorCode ?? "MODEL"] = (this.#failures[errorCode ?? "MODEL"] ?? 0) + 1;
    this.#recent.push([size, reason, failedItems]);
    if (this.#recent.length > recentKept) this.#recent.shift();
    // Arrivals at random are evenly spread over the time in which a batch gathers; mean and longest wait are known.
    const points = Math.min(size, spreadOver);
    const shortestMs = Math.max(0, 2 * queueWaitMs.mean - queueWaitMs.max);
    for (let point = 0; point < points; point++) {
      const share = points === 1 ? 1 : point / (points - 1);
      this.#latencyMs.record(tookMs + shortestMs + share * (queueWaitMs.max - shortestMs), size / points);
    }
  }
}
