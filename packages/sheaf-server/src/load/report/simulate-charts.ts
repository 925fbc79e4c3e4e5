import type { WhatIfPoint } from "../simulate/what-if.ts";
import { chartSpec, colourOf, logAxis, quantileLines, quantity, type Chart } from "./chart.ts";

/** p50 and p99, mean batch size, and lost calls, over the load, one line a policy. */
export function simulateCharts(points: readonly WhatIfPoint[], axisTitle: string): Chart[] {
  const nameOf = ({ policy, scaledBy }: WhatIfPoint): string =>
    scaledBy === undefined ? policy : `${policy}, ${scaledBy}`;
  const names = [...new Set(points.map(nameOf))];
  const rows = points.flatMap((point) => {
    const { load, result } = point;
    const { latencyMs, meanBatchSize } = result;
    return (["p50", "p99"] as const).map((quantile) => ({
      configuration: nameOf(point),
      line: `${nameOf(point)} ${quantile}`,
      quantile,
      load,
      ms: latencyMs[quantile],
      meanBatchSize,
    }));
  });
  const x = quantity("load", { scale: { zero: true }, axis: { title: axisTitle, format: ",~f" } });
  const latencyAxis = logAxis(
    rows.map(({ ms }) => ms),
    "Latency (ms, log scale; solid p99, dashed p50)",
  );
  return [
    {
      name: "latency",
      title: "Latency by load",
      reading:
        "Solid: p99, dashed: p50, of the calls that got a result. Lower is better. Where lines meet, the last named is seen.",
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
