import { configurationsOf, type LoadResult } from "../result.ts";
import { colourOf, panelsSpec, quantity, type Chart } from "./chart.ts";

/** How many items the batches of each configuration held, one panel a configuration. */
export function batchSizes(results: readonly LoadResult[]): Chart {
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
    spec: (size) =>
      panelsSpec(rows, size, names, {
        mark: "bar",
        encoding: {
          x: { field: "size", type: "ordinal", sort: used, axis: { title: "Items in the batch", labelAngle: 0 } },
          y: quantity("percent", { scale: { domain: [0, 100] }, axis: { title: "Batches (%)" } }),
          color: { ...colourOf(names), legend: null },
        },
      }),
  };
}

function sizeLabel(low: number, upTo: number | null): string {
  if (upTo === null) return `${low}+`;
  return low === upTo ? String(upTo) : `${low}–${upTo}`;
}
