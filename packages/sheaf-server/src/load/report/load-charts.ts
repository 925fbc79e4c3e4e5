import type { LatencyMs, LoadResult } from "../result.ts";
import { chartSpec, colourOf, logAxis, type Chart } from "./chart.ts";

/** The pictures of a load report; those without data are left out. */
export function loadCharts(results: readonly LoadResult[]): Chart[] {
  const charts = [overview(results), throughput(results), successRate(results)];
  if (results.some(({ phases }) => phases.length > 1)) charts.push(throughputAgainstLatency(results));
  charts.push(...patternsOf(results).map((pattern) => fan(results, pattern)));
  if (results.some(({ batches }) => batches !== undefined)) charts.push(batchSizes(results));
  return charts;
}

const configurationsOf = (results: readonly LoadResult[]): string[] => [
  ...new Set(results.map(({ configuration }) => configuration)),
];
const patternsOf = (results: readonly LoadResult[]): string[] => [...new Set(results.map(({ pattern }) => pattern))];

const quantiles = ["p50", "p95", "p99"] as const satisfies readonly (keyof LatencyMs)[];

/** Room for one group of bars per pattern. */
const widthOf = (results: readonly LoadResult[]): object => ({
  width: Math.max(240, results.length * 44),
  height: 260,
});

const patternAxis = (results: readonly LoadResult[]): object => ({
  field: "pattern",
  type: "nominal",
  sort: patternsOf(results),
  axis: { title: "Pattern", labelAngle: 0, ticks: false },
  scale: { paddingInner: 0.2, paddingOuter: 0.1 },
});

function overview(results: readonly LoadResult[]): Chart {
  const rows = results.flatMap(({ configuration, pattern, latencyMs }) =>
    quantiles.map((quantile) => ({ configuration, pattern, quantile, ms: latencyMs[quantile], p50: latencyMs.p50 })),
  );
  const names = configurationsOf(results);
  const y = {
    field: "ms",
    type: "quantitative",
    ...logAxis(
      rows.map(({ ms }) => ms),
      "Latency (ms, log scale)",
    ),
  };
  const place = {
    x: patternAxis(results),
    xOffset: { field: "configuration", sort: names },
    color: colourOf(names),
  };
  return {
    name: "overview",
    title: "Latency by pattern",
    reading: "From p50 to p99 of each configuration, from the moment a request was to leave. Lower is better.",
    spec: chartSpec(
      rows.filter(({ p50 }) => p50 > 0),
      {
        ...widthOf(results),
        layer: [
          {
            transform: [{ filter: "datum.quantile === 'p99'" }],
            mark: { type: "rule", strokeWidth: 2, opacity: 0.5 },
            encoding: { ...place, y: { ...y, field: "p50" }, y2: { field: "ms" } },
          },
          {
            mark: { type: "point", filled: true, size: 70, opacity: 1 },
            encoding: {
              ...place,
              y,
              shape: {
                field: "quantile",
                type: "nominal",
                title: null,
                sort: quantiles,
                scale: { domain: quantiles, range: ["circle", "diamond", "triangle-up"] },
              },
            },
          },
        ],
      },
    ),
  };
}

function throughput(results: readonly LoadResult[]): Chart {
  const rows = results.map(({ configuration, pattern, achievedPerS, offeredPerS }) => ({
    configuration,
    pattern,
    achievedPerS,
    offeredPerS,
  }));
  const names = configurationsOf(results);
  const place = {
    x: patternAxis(results),
    xOffset: { field: "configuration", sort: names },
  };
  const axis = { title: "Requests per second", format: ",~f" };
  return {
    name: "throughput",
    title: "Throughput by pattern",
    reading:
      "Bars: successes a second within the run. Black lines: what was offered. A bar below its line fell behind.",
    spec: chartSpec(rows, {
      ...widthOf(results),
      layer: [
        {
          mark: { type: "bar" },
          encoding: { ...place, color: colourOf(names), y: { field: "achievedPerS", type: "quantitative", axis } },
        },
        {
          mark: { type: "tick", color: "black", thickness: 2, orient: "horizontal" },
          encoding: { ...place, y: { field: "offeredPerS", type: "quantitative", axis } },
        },
      ],
    }),
  };
}

function successRate(results: readonly LoadResult[]): Chart {
  const rows = results.map(({ configuration, pattern, successRate }) => ({
    configuration,
    pattern,
    percent: 100 * successRate,
  }));
  const names = configurationsOf(results);
  return {
    name: "success-rate",
    title: "Success rate by pattern",
    reading: "Share of the requests that ended 2xx; refused, failed and timed-out ones are missing from 100 %.",
    spec: chartSpec(rows, {
      ...widthOf(results),
      mark: "bar",
      encoding: {
        x: patternAxis(results),
        xOffset: { field: "configuration", sort: names },
        color: colourOf(names),
        y: {
          field: "percent",
          type: "quantitative",
          scale: { domain: [0, 100] },
          axis: { title: "Requests answered 2xx (%)" },
        },
      },
    }),
  };
}

/** Levels of a step where there are any: each ran long enough at one rate; else the phases of whatever ran. */
function throughputAgainstLatency(results: readonly LoadResult[]): Chart {
  const steps = results.filter(({ pattern }) => pattern === "step");
  const from = steps.length > 0 ? steps : results;
  const rows = from.flatMap(({ configuration, pattern, phases }) =>
    phases.flatMap(({ achievedPerS, latencyMs, offeredPerS }) =>
      (["p50", "p99"] as const).map((quantile) => ({
        configuration,
        line: `${configuration} ${pattern} ${quantile}`,
        quantile,
        achievedPerS,
        offeredPerS,
        ms: latencyMs[quantile],
      })),
    ),
  );
  const names = configurationsOf(results);
  return {
    name: "throughput-against-latency",
    title: "Throughput against latency",
    reading:
      `One point per ${steps.length > 0 ? "level of the step" : "phase"}, joined in the order of the offered rate. ` +
      "Right and low is better; a line that turns up, or back, has met its capacity.",
    spec: chartSpec(
      rows.filter(({ ms }) => ms > 0),
      {
        width: 560,
        height: 320,
        mark: { type: "line", point: { filled: true, size: 45 }, strokeWidth: 2 },
        encoding: {
          x: {
            field: "achievedPerS",
            type: "quantitative",
            scale: { zero: true },
            axis: { title: "Achieved throughput (requests per second)", format: ",~f" },
          },
          y: {
            field: "ms",
            type: "quantitative",
            ...logAxis(
              rows.map(({ ms }) => ms),
              "Latency (ms, log scale; solid p99, dashed p50)",
            ),
          },
          order: { field: "offeredPerS", type: "quantitative" },
          color: colourOf(names),
          detail: { field: "line" },
          strokeDash: {
            field: "quantile",
            type: "nominal",
            sort: ["p50", "p99"],
            scale: {
              domain: ["p50", "p99"],
              range: [
                [5, 4],
                [1, 0],
              ],
            },
            legend: null,
          },
        },
      },
    ),
  };
}

/** Latency percentiles over the run, one panel a configuration, on one scale. */
function fan(results: readonly LoadResult[], pattern: string): Chart {
  const own = results.filter((result) => result.pattern === pattern);
  const names = configurationsOf(own);
  const rows = own.flatMap(({ configuration, series }) =>
    series
      .filter(({ latencyMs }) => latencyMs.p50 > 0)
      .map(({ atMs, latencyMs: { p50, p75, p90, p95, p99 } }) => ({
        configuration,
        s: atMs / 1000,
        p50,
        p75,
        p90,
        p95,
        p99,
      })),
  );
  const scale = logAxis(
    rows.flatMap(({ p50, p99 }) => [p50, p99]),
    "Latency (ms, log scale)",
  );
  const x = { field: "s", type: "quantitative", axis: { title: "Time (s)", tickCount: 6 } };
  const band = (low: string, high: string, opacity: number): object => ({
    mark: { type: "area", opacity, clip: true },
    encoding: {
      x,
      y: { field: low, type: "quantitative", ...scale },
      y2: { field: high },
      color: { ...colourOf(configurationsOf(results)), legend: null },
    },
  });
  return {
    name: `fan-${pattern}`,
    title: `Latency over time: ${pattern}`,
    reading: "Line: p50. Bands outwards: up to p75, p90, p95 and p99, by the time a request was to leave.",
    spec: chartSpec(rows, {
      facet: { field: "configuration", type: "nominal", sort: names, title: null },
      columns: 2,
      spec: {
        width: 330,
        height: 150,
        layer: [
          band("p50", "p75", 0.6),
          band("p75", "p90", 0.42),
          band("p90", "p95", 0.28),
          band("p95", "p99", 0.16),
          {
            mark: { type: "line", strokeWidth: 2, clip: true },
            encoding: {
              x,
              y: { field: "p50", type: "quantitative", ...scale },
              color: { ...colourOf(configurationsOf(results)), legend: null },
            },
          },
        ],
      },
    }),
  };
}

function batchSizes(results: readonly LoadResult[]): Chart {
  const names = configurationsOf(results);
  const labels: string[] = [];
  const counts = new Map<string, number>();
  for (const { configuration, batches: counted } of results) {
    let low = 1;
    for (const { upTo, batches } of counted?.sizes ?? []) {
      const label = sizeLabel(low, upTo);
      if (!labels.includes(label)) labels.push(label);
      const key = JSON.stringify([configuration, label]);
      counts.set(key, (counts.get(key) ?? 0) + batches);
      low = (upTo ?? low) + 1;
    }
  }
  const total = (configuration: string): number =>
    labels.reduce((sum, label) => sum + (counts.get(JSON.stringify([configuration, label])) ?? 0), 0);
  const used = labels.filter((label) => names.some((name) => (counts.get(JSON.stringify([name, label])) ?? 0) > 0));
  const rows = names
    .filter((name) => total(name) > 0)
    .flatMap((configuration) =>
      used.map((size) => ({
        configuration,
        size,
        percent: (100 * (counts.get(JSON.stringify([configuration, size])) ?? 0)) / total(configuration),
      })),
    );
  return {
    name: "batch-sizes",
    title: "Batch sizes",
    reading: "Share of the batches by the items they held, all patterns together, as the server counted them.",
    spec: chartSpec(rows, {
      facet: { field: "configuration", type: "nominal", sort: names, title: null },
      columns: 2,
      spec: {
        width: 330,
        height: 150,
        mark: "bar",
        encoding: {
          x: { field: "size", type: "ordinal", sort: used, axis: { title: "Items in the batch", labelAngle: 0 } },
          y: { field: "percent", type: "quantitative", scale: { domain: [0, 100] }, axis: { title: "Batches (%)" } },
          color: { ...colourOf(names), legend: null },
        },
      },
    }),
  };
}

function sizeLabel(low: number, upTo: number | null): string {
  if (upTo === null) return `${low}+`;
  return low === upTo ? String(upTo) : `${low}–${upTo}`;
}
