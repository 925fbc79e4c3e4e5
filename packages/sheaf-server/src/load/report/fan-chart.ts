import { configurationsOf, type LoadResult } from "../result.ts";
import { colourOf, logAxis, panelsSpec, quantity, type Chart } from "./chart.ts";

/** Latency percentiles over the run, one panel a configuration, on one scale. */
export function fan(results: readonly LoadResult[], pattern: string): Chart {
  const own = results.filter((result) => result.pattern === pattern);
  const names = configurationsOf(own);
  const rows = own.flatMap(({ configuration, series }) =>
    series
      .filter(({ latencyMs }) => latencyMs.p50 > 0)
      .map(({ atMs, latencyMs }) => ({ configuration, s: atMs / 1000, ...latencyMs })),
  );
  const scale = logAxis(
    rows.flatMap(({ p50, p99 }) => [p50, p99]),
    "Latency (ms, log scale)",
  );
  const x = quantity("s", { axis: { title: "Time (s)", tickCount: 6 } });
  const color = { ...colourOf(configurationsOf(results)), legend: null };
  const band = (low: string, high: string, opacity: number): object => ({
    mark: { type: "area", opacity, clip: true },
    encoding: { x, y: quantity(low, scale), y2: { field: high }, color },
  });
  return {
    name: `fan-${pattern}`,
    title: `Latency over time: ${pattern}`,
    reading: "Line: p50. Bands outwards: up to p75, p90, p95 and p99, by the time a request was to leave.",
    spec: (size) =>
      panelsSpec(rows, size, names, {
        layer: [
          band("p50", "p75", 0.6),
          band("p75", "p90", 0.42),
          band("p90", "p95", 0.28),
          band("p95", "p99", 0.16),
          {
            mark: { type: "line", strokeWidth: 2, clip: true },
            encoding: { x, y: quantity("p50", scale), color },
          },
        ],
      }),
  };
}
