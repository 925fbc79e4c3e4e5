import { lineOf, sharersOf, type WhatIfPoint } from "../simulate/what-if.ts";
import { chartSpec, colourOf, logAxis, quantileLines, quantity, type Chart } from "./chart.ts";

/** p50 and p99, and mean batch size, over the load, one line a policy with its way to scale or to tell tenants apart. */
export function simulateCharts(points: readonly WhatIfPoint[], axisTitle: string): Chart[] {
  const names = [...new Set(points.map(lineOf))];
  const rows = points.flatMap((point) =>
    (["p50", "p99"] as const).map((quantile) => ({
      configuration: lineOf(point),
      line: `${lineOf(point)} ${quantile}`,
      quantile,
      load: point.load,
      ms: sharersOf(point).latencyMs[quantile],
      meanBatchSize: point.result.meanBatchSize,
    })),
  );
  const whose = points.some(({ tenantKey }) => tenantKey !== undefined) ? "of the tenants' calls" : "of the calls";
  const x = quantity("load", { scale: { zero: true }, axis: { title: axisTitle, format: ",~f" } });
  const latencyAxis = logAxis(
    rows.map(({ ms }) => ms),
    "Latency (ms, log scale; solid p99, dashed p50)",
  );
  return [
    {
      name: "latency",
      title: "Latency by load",
      reading: `Solid: p99, dashed: p50, ${whose} that got a result. Lower is better. Where lines meet, the last named is seen.`,
      spec: (size) =>
        chartSpec(
          rows.filter(({ ms }) => ms > 0),
          size,
          {
            height: 320,
            mark: { type: "line", point: { filled: true, size: 45 } },
            encoding: { x, y: quantity("ms", latencyAxis), color: colourOf(names), ...quantileLines },
          },
        ),
    },
    {
      name: "batch-size",
      title: "Mean batch size by load",
      reading: "Items in a batch on average. Where lines meet, the last named is seen.",
      spec: (size) =>
        chartSpec(
          rows.filter(({ quantile }) => quantile === "p50"),
          size,
          {
            height: 240,
            mark: { type: "line", point: { filled: true, size: 45 } },
            encoding: {
              x,
              y: quantity("meanBatchSize", { axis: { title: "Items per batch" } }),
              color: colourOf(names),
            },
          },
        ),
    },
  ];
}
