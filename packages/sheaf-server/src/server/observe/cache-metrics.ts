import type { MetricFamily, MetricSample } from "sheaf/metrics";
import type { CacheCounts, CachePart } from "../cache/cache-counts.ts";

/** A batcher whose results are kept, or not. */
interface MaybeCached {
  readonly name: string;
  readonly cache: Pick<CachePart, "counts"> | undefined;
}

/** What the cache holds and saves, of every model whose results are kept. */
export function cacheFamilies(all: readonly MaybeCached[]): MetricFamily[] {
  const cached = all.flatMap(({ name, cache }) => (cache === undefined ? [] : [{ name, counts: cache.counts }]));
  if (cached.length === 0) return [];
  const samples = (of: (counts: CacheCounts) => number): MetricSample[] =>
    cached.map(({ name, counts }) => ({ labels: { batcher: name }, value: of(counts) }));
  return [
    {
      name: "sheaf_cache_hits_total",
      help: "Items answered from the cache.",
      type: "counter",
      samples: samples(({ hits }) => hits),
    },
    {
      name: "sheaf_cache_misses_total",
      help: "Items that were not in the cache.",
      type: "counter",
      samples: samples(({ misses }) => misses),
    },
    {
      name: "sheaf_cache_saved_runs_total",
      help: "Runs that the items from the cache would have taken.",
      type: "counter",
      samples: samples(({ savedRuns }) => savedRuns),
    },
    {
      name: "sheaf_cache_evictions_total",
      help: "Results that made room for others.",
      type: "counter",
      samples: samples(({ evictions }) => evictions),
    },
    {
      name: "sheaf_cache_items",
      help: "Results in the cache.",
      type: "gauge",
      samples: samples(({ items }) => items),
    },
    {
      name: "sheaf_cache_bytes",
      help: "Memory of the results in the cache, as estimated.",
      type: "gauge",
      samples: samples(({ bytes }) => bytes),
    },
  ];
}
