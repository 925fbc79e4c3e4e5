import type { BatcherStats, Distribution } from "sheaf";

/**
 * The statistics of several batchers as those of one: counts add up, means are weighted by batches, distributions are those
 * of the slowest, and the cost model is that of the busiest.
 */
export function sumOfStats(name: string, parts: readonly BatcherStats[]): BatcherStats {
  const sum = (of: (stats: BatcherStats) => number): number => parts.reduce((total, part) => total + of(part), 0);
  const batches = sum((part) => part.batches);
  const mean = (of: (stats: BatcherStats) => number): number =>
    batches === 0 ? 0 : sum((part) => of(part) * part.batches) / batches;
  const busiest = parts.reduce<BatcherStats | undefined>(
    (most, part) => (most === undefined || part.batches > most.batches ? part : most),
    undefined,
  );
  const reasons: Record<string, number> = {};
  for (const part of parts)
    for (const [reason, count] of Object.entries(part.reasons)) reasons[reason] = (reasons[reason] ?? 0) + count;
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
    costModel: busiest?.costModel ?? null,
    speedup: busiest?.speedup ?? null,
    expectedSpeedup: busiest?.expectedSpeedup ?? null,
    cost: null,
    reasons,
    advice: [...new Set(parts.flatMap(({ advice }) => advice))],
  };
}

function slowest(parts: readonly Distribution[]): Distribution {
  const most = (of: (part: Distribution) => number): number => Math.max(0, ...parts.map((part) => of(part)));
  return { p50: most((d) => d.p50), p95: most((d) => d.p95), p99: most((d) => d.p99), max: most((d) => d.max) };
}
