import type { Calibration } from "sheaf/tuning";
import { chartSpec, colourOf, quantity, type Chart } from "./chart.ts";

export function tuneCharts({ rows, costModel, kneeSize }: Calibration): Chart[] {
  const name = (concurrency: number): string => `${concurrency} in flight`;
  const values = rows.map(({ concurrency, size, runMs, itemsPerS, errorRate }) => ({
    configuration: name(concurrency),
    size,
    runMs,
    itemsPerS,
    lowMs: runMs * (1 - errorRate),
    highMs: runMs * (1 + errorRate),
  }));
  const names = [...new Set(values.map(({ configuration }) => configuration))];
  const largest = Math.max(...rows.map(({ size }) => size));
  const knee =
    kneeSize === largest
      ? `They still rise at the largest measured size, ${largest}.`
      : `Vertical line: ${kneeSize}, beyond which throughput rises by less than 5 %.`;
  const line = [0, largest].map((size) => ({ size, runMs: costModel.fixedMs + costModel.perItemMs * size }));
  const x = quantity("size", { axis: { title: "Items in the batch" }, scale: { domain: [0, largest] } });
  return [
    {
      name: "run-time",
      title: "Run time by batch size",
      reading:
        "Points: medians with their 95 % interval. Dashed: the fitted line; where it meets the axis is the fixed part.",
      spec: (size) =>
        chartSpec(values, size, {
          height: 300,
          layer: [
            {
              data: { values: line },
              mark: { type: "line", strokeDash: [5, 4], color: "#555555" },
              encoding: { x, y: quantity("runMs") },
            },
            {
              mark: { type: "rule", strokeWidth: 2 },
              encoding: {
                x,
                y: quantity("lowMs", { axis: { title: "Run time (ms)" } }),
                y2: { field: "highMs" },
                color: colourOf(names),
              },
            },
            {
              mark: { type: "line", point: { filled: true, size: 55 } },
              encoding: { x, y: quantity("runMs"), color: colourOf(names) },
            },
          ],
        }),
    },
    {
      name: "items-per-second",
      title: "Items a second by batch size",
      reading: `With full batches always in flight. ${knee}`,
      spec: (size) =>
        chartSpec(values, size, {
          height: 300,
          layer: [
            {
              data: { values: kneeSize === largest ? [] : [{ size: kneeSize }] },
              mark: { type: "rule", strokeDash: [3, 3], color: "#555555" },
              encoding: { x },
            },
            {
              mark: { type: "line", point: { filled: true, size: 55 } },
              encoding: {
                x,
                y: quantity("itemsPerS", { axis: { title: "Items per second", format: ",~f" } }),
                color: colourOf(names),
              },
            },
          ],
        }),
    },
  ];
}
