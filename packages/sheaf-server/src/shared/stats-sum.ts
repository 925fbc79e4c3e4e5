import type { BatcherStats, DispatchReason, Distribution } from "sheaf";
import { emptyStats } from "./empty-stats.ts";

/**
 * The statistics of several batchers as those of one: counts add up, means are weighted by batches, distributions are those
 * of the slowest, cost model and verdict are those of the busiest, and an overload is the longest.
 */
export function sumOfStats(name: string, parts: readonly BatcherStats[]): BatcherStats {
  const sum = (of: (stats: BatcherStats) => number): number => parts.reduce((total, part) => total + of(part), 0);
  const batches = sum((part) => part.batches);
  const mean = (of: (stats: BatcherStats) => number): number =>
    batches === 0 ? 0 : sum((part) => of(part) * part.batches) / batches;
  const [first = emptyStats(name), ...others] = parts;
  const busiest = others.reduce((most, part) => (part.batches > most.batches ? part : most), first);
  const overloadedMs = ({ overload }: BatcherStats): number => overload?.forMs ?? -1;
  const longest = others.reduce((most, part) => (overloadedMs(part) > overloadedMs(most) ? part : most), first);
  const reasons = { ...first.reasons };
  for (const reason of Object.keys(reasons) as DispatchReason[]) reasons[reason] = sum((part) => part.reasons[reason]);
  return {
    name,
    queued: sum((part) => part.queued),
    inFlight: sum((part) => part.inFlight),
    items: {
      ok: sum(({ items }) => items.ok),
      error: sum(({ items }) => items.error),
      timeout: sum(({ items }) => items.timeout),
      aborted: sum(({ items }) => items.aborted),
      rejected: sum(({ items }) => items.rejected),
    },
    batches,
    bisectRuns: sum((part) => part.bisectRuns),
    abandonedRuns: sum((part) => part.abandonedRuns),
    meanBatchSize: mean((part) => part.meanBatchSize),
    fillRate: mean((part) => part.fillRate),
    queueWaitMs: slowest(parts.map((part) => part.queueWaitMs)),
    runMs: slowest(parts.map((part) => part.runMs)),
    latencyMs: slowest(parts.map((part) => part.latencyMs)),
    costModel: busiest.costModel,
    verdict: busiest.verdict,
    overload: longest.overload,
    cost: null,
    reasons,
    advice: [...new Set(parts.flatMap(({ advice }) => advice))],
  };
}

function slowest(parts: readonly Distribution[]): Distribution {
  const most = (of: (part: Distribution) => number): number => Math.max(0, ...parts.map((part) => of(part)));
  return { p50: most((d) => d.p50), p95: most((d) => d.p95), p99: most((d) => d.p99), max: most((d) => d.max) };
}
