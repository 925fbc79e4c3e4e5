import { configurationsOf, type LatencyMs, type LoadResult } from "../result.ts";
import { comparisons } from "../bench/comparison.ts";
import { resultTable } from "../bench/result-table.ts";
import { batchSizes } from "./batch-size-chart.ts";
import { chartSpec, colourOf, logAxis, type Chart } from "./chart.ts";
import { fan } from "./fan-chart.ts";
import type { ReportSection } from "./page.ts";

/** The pictures of all patterns together; those without data are left out. */
export function loadCharts(results: readonly LoadResult[]): Chart[] {
  const charts = [overview(results), throughput(results), successRate(results)];
  if (results.some(({ phases }) => phases.length > 1)) charts.push(throughputAgainstLatency(results));
  if (results.some(({ batches }) => batches !== undefined)) charts.push(batchSizes(results));
  return charts;
}

/** A part for each pattern: who won, the figures, and latency over time. */
export function loadSections(results: readonly LoadResult[]): ReportSection[] {
  return [...comparisons(results)].map(([pattern, sentence]) => {
    const rows = resultTable(results.filter((result) => result.pattern === pattern));
    const title = `${pattern[0]!.toUpperCase()}${pattern.slice(1)}`;
    // The pattern is the title. What the sentence speaks of comes first: a phone shows four columns.
    const columns = ["configuration", "p50 ms", "p99 ms", "success", "achieved/s", "offered/s", "mean batch"];
    const others = rows[0]!.filter((name) => !columns.includes(name) && name !== "pattern");
    const places = [...columns, ...others].map((name) => rows[0]!.indexOf(name)).filter((place) => place >= 0);
    const chosen = rows.map((row) => places.map((place) => row[place]!));
    return { title, sentences: [sentence], rows: chosen, charts: [fan(results, pattern)] };
  });
}

const patternsOf = (results: readonly LoadResult[]): string[] => [...new Set(results.map(({ pattern }) => pattern))];

const quantiles = ["p50", "p95", "p99"] as const satisfies readonly (keyof LatencyMs)[];

const height = 260;

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
    reading:
      "From p50 (circle) over p95 (diamond) to p99 (triangle), from the moment a request was to leave. Lower is better.",
    spec: (size) =>
      chartSpec(
        rows.filter(({ p50 }) => p50 > 0),
        size,
        {
          height,
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
                  legend: null,
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
  const highest = Math.max(...rows.flatMap(({ achievedPerS, offeredPerS }) => [achievedPerS, offeredPerS]));
  const scale = { domain: [0, 1.08 * highest] };
  return {
    name: "throughput",
    title: "Throughput by pattern",
    reading:
      "Bars: successes a second within the run. Lines across: what was offered. A bar below its line fell behind.",
    spec: (size) =>
      chartSpec(rows, size, {
        height,
        layer: [
          {
            mark: { type: "bar" },
            encoding: {
              ...place,
              color: colourOf(names),
              y: { field: "achievedPerS", type: "quantitative", axis, scale },
            },
          },
          {
            mark: { type: "tick", color: "#000000", thickness: 2, orient: "horizontal" },
            encoding: { ...place, y: { field: "offeredPerS", type: "quantitative", axis, scale } },
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
    spec: (size) =>
      chartSpec(rows, size, {
        height,
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
    spec: (size) =>
      chartSpec(
        rows.filter(({ ms }) => ms > 0),
        size,
        {
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
