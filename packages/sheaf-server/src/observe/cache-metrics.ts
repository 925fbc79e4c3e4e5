import type { MetricFamily, MetricSample } from "sheaf/internal/metrics";
import type { CacheCounts, CachePart } from "../cache/cache-counts.ts";
import { counter, gauge } from "./family.ts";

interface MaybeCached {
  readonly name: string;
  readonly cache: Pick<CachePart, "counts"> | undefined;
}

/** The cache's contents and savings, of every model whose results are kept. */
export function cacheFamilies(all: readonly MaybeCached[]): MetricFamily[] {
  const cached = all.flatMap(({ name, cache }) => (cache === undefined ? [] : [{ name, counts: cache.counts }]));
  if (cached.length === 0) return [];
  const samples = (of: keyof CacheCounts): MetricSample[] =>
    cached.map(({ name, counts }) => ({ labels: { batcher: name }, value: counts[of] }));
  return [
    counter("sheaf_cache_hits_total", "Items answered from the cache.", samples("hits")),
    counter("sheaf_cache_misses_total", "Items that were not in the cache.", samples("misses")),
    counter(
      "sheaf_cache_saved_runs_total",
      "Runs that the items from the cache would have taken.",
      samples("savedRuns"),
    ),
    counter("sheaf_cache_evictions_total", "Results that made room for others.", samples("evictions")),
    gauge("sheaf_cache_items", "Results in the cache.", samples("items")),
    gauge("sheaf_cache_bytes", "Memory of the results in the cache, as estimated.", samples("bytes")),
  ];
}
