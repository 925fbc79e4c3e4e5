import { configurationsOf, type LatencyMs, type LoadResult } from "../result.ts";
import { comparisons } from "../comparison.ts";
import { resultTable } from "../result-table.ts";
import { batchSizes } from "./batch-size-chart.ts";
import { chartSpec, colourOf, logAxis, quantileLines, quantity, type Chart } from "./chart.ts";
import { fan } from "./fan-chart.ts";
import type { ReportSection } from "./page.ts";

/** The pictures of all patterns together; those without data are left out. */
export function loadCharts(results: readonly LoadResult[]): Chart[] {
  const charts = [overview(results), throughput(results)];
  // Where every request was answered, the bars would all be 100 %.
  if (results.some((result) => result.successRate < 1)) charts.push(successRate(results));
  if (rising(results).length > 0) charts.push(throughputAgainstLatency(results));
  if (results.some(({ batches }) => batches !== undefined)) charts.push(batchSizes(results));
  return charts;
}

/** A part for each pattern: who won, the figures, and latency over time. */
export function loadSections(results: readonly LoadResult[]): ReportSection[] {
  return [...comparisons(results)].map(([pattern, sentence]) => {
    const rows = resultTable(results.filter((result) => result.pattern === pattern));
    const title = `${pattern[0]!.toUpperCase()}${pattern.slice(1)}`;
    // The pattern is the title. The figures of the sentence come first: a phone shows four columns.
    const columns = ["configuration", "p50 ms", "p99 ms", "success", "achieved/s", "offered/s", "mean batch"];
    const others = rows[0]!.filter((name) => !columns.includes(name) && name !== "pattern");
    const places = [...columns, ...others].map((name) => rows[0]!.indexOf(name)).filter((place) => place >= 0);
    const chosen = rows.map((row) => places.map((place) => row[place]!));
    return { title, sentences: [sentence], rows: chosen, charts: [fan(results, pattern)] };
  });
}

const quantiles = ["p50", "p95", "p99"] as const satisfies readonly (keyof LatencyMs)[];

const height = 260;

/** The configurations side by side, pattern by pattern. */
const byPattern = (results: readonly LoadResult[]): { readonly place: object; readonly color: object } => {
  const names = configurationsOf(results);
  const x = {
    field: "pattern",
    type: "nominal",
    sort: [...new Set(results.map(({ pattern }) => pattern))],
    axis: { title: "Pattern", labelAngle: 0, ticks: false },
    scale: { paddingInner: 0.2, paddingOuter: 0.1 },
  };
  return { place: { x, xOffset: { field: "configuration", sort: names } }, color: colourOf(names) };
};

function overview(results: readonly LoadResult[]): Chart {
  const rows = results.flatMap(({ configuration, pattern, latencyMs }) =>
    quantiles.map((quantile) => ({ configuration, pattern, quantile, ms: latencyMs[quantile], p50: latencyMs.p50 })),
  );
  const { place, color } = byPattern(results);
  const axis = logAxis(
    rows.map(({ ms }) => ms),
    "Latency (ms, log scale)",
  );
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
              encoding: { ...place, color, y: quantity("p50", axis), y2: { field: "ms" } },
            },
            {
              mark: { type: "point", filled: true, size: 70, opacity: 1 },
              encoding: {
                ...place,
                color,
                y: quantity("ms", axis),
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
  const { place, color } = byPattern(results);
  const highest = Math.max(...rows.flatMap(({ achievedPerS, offeredPerS }) => [achievedPerS, offeredPerS]));
  const onAxis = { axis: { title: "Requests per second", format: ",~f" }, scale: { domain: [0, 1.08 * highest] } };
  return {
    name: "throughput",
    title: "Throughput by pattern",
    reading:
      "Bars: successes a second within the run. Lines across: the offered rate. A bar below its line fell behind.",
    spec: (size) =>
      chartSpec(rows, size, {
        height,
        layer: [
          {
            mark: { type: "bar" },
            encoding: { ...place, color, y: quantity("achievedPerS", onAxis) },
          },
          {
            mark: { type: "tick", color: "#000000", thickness: 2, orient: "horizontal" },
            encoding: { ...place, y: quantity("offeredPerS", onAxis) },
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
  const { place, color } = byPattern(results);
  return {
    name: "success-rate",
    title: "Success rate by pattern",
    reading: "Share of the requests that ended 2xx; refused, failed and timed-out ones are missing from 100 %.",
    spec: (size) =>
      chartSpec(rows, size, {
        height,
        mark: "bar",
        encoding: {
          ...place,
          color,
          y: quantity("percent", { scale: { domain: [0, 100] }, axis: { title: "Requests answered 2xx (%)" } }),
        },
      }),
  };
}

/**
 * The steps where there are any, as each level ran long enough at one rate; else the ramps. In bursts the rate goes up and down, and
 * a line through their phases would be a knot.
 */
function rising(results: readonly LoadResult[]): readonly LoadResult[] {
  const [steps, ramps] = ["step", "ramp"].map((name) =>
    results.filter(({ pattern, phases }) => pattern === name && phases.length > 1),
  );
  return steps!.length > 0 ? steps! : ramps!;
}

function throughputAgainstLatency(results: readonly LoadResult[]): Chart {
  const from = rising(results);
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
  const latencyAxis = logAxis(
    rows.map(({ ms }) => ms),
    "Latency (ms, log scale; solid p99, dashed p50)",
  );
  return {
    name: "throughput-against-latency",
    title: "Throughput against latency",
    reading:
      `One point per ${from[0]?.pattern === "step" ? "level of the step" : "phase of the ramp"}, joined in the order of the offered rate. ` +
      "Right and low is better; a line that turns up, or back, has met its capacity.",
    spec: (size) =>
      chartSpec(
        rows.filter(({ ms }) => ms > 0),
        size,
        {
          height: 320,
          mark: { type: "line", point: { filled: true, size: 45 }, strokeWidth: 2 },
          encoding: {
            x: quantity("achievedPerS", {
              scale: { zero: true },
              axis: { title: "Achieved throughput (requests per second)", format: ",~f" },
            }),
            y: quantity("ms", latencyAxis),
            order: quantity("offeredPerS"),
            color: colourOf(configurationsOf(results)),
            ...quantileLines,
          },
        },
      ),
  };
}
