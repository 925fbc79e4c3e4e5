import { advise, batchesNeeded } from "./advice.ts";
import { slotsFor } from "./slots-for.ts";
import type { Statistics } from "./stats.ts";
import type { BatcherStats, LaneStats, LanesStats, SlotsNeeded, TenantStats, Verdict } from "../contract/stats.ts";

/** The part of a snapshot that neither batches nor calls tell. */
type Counts = Pick<
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
>;

/** What `stats()` returns. */
export function snapshotOf(
  statistics: Statistics,
  nowMs: number,
  counts: Counts,
  overload: BatcherStats["overload"] = null,
): BatcherStats {
  const { batches, items, fillSum, queueWaitMs, runMs, reasons, cost, calls } = statistics;
  const judgement = cost.judgement();
  const cameAlone = batches >= batchesNeeded && items === batches;
  const derived = {
    batches,
    // Before the first batch a mean is NaN, hence 0.
    meanBatchSize: items / batches || 0,
    fillRate: fillSum / batches || 0,
    queueWaitMs: queueWaitMs.distribution(nowMs),
    runMs: runMs.distribution(nowMs),
    ...judgement,
    verdict: cameAlone ? nothingToBatch(judgement.verdict) : judgement.verdict,
    overload,
    slotsNeeded: slotsNeeded(statistics, nowMs),
    cost: costsOf(statistics, counts.bisectRuns),
    reasons: { ...reasons },
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

function costsOf({ limits, batches, items, weight }: Statistics, bisectRuns: number): BatcherStats["cost"] {
  if (limits.price === undefined) return null;
  const { perRun = 0, perItem = 0, perWeight = 0 } = limits.price;
  const ofItems = items * perItem + weight * perWeight;
  const total = (batches + bisectRuns) * perRun + ofItems;
  if (items === 0) return { total, perItem: 0, perItemUnbatched: 0 };
  return { total, perItem: total / items, perItemUnbatched: perRun + ofItems / items };
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

/** Seconds that count together: one alone may be busy by chance, and a minute hides a burst. */
const stretch = 5;
const fewestArrivals = 30;
const fewestRuns = 30;

/** Null while too little is known, where calls have no deadline, and where one item alone takes longer than it. */
function slotsNeeded(statistics: Statistics, nowMs: number): SlotsNeeded | null {
  const { cost, limits } = statistics;
  const { withinMs } = statistics.due;
  const counts = statistics.arrivals(nowMs);
  const seconds = counts.length;
  const sum = sumOf(counts);
  if (seconds < stretch || sum < fewestArrivals || cost.batches < fewestRuns || withinMs === 0) return null;
  const busiest = Math.max(...counts.slice(stretch - 1).map((_, at) => sumOf(counts.slice(at, at + stretch))));
  const { maxBatchSize } = limits;
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

const sumOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0);
