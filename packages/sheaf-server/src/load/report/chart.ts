import type { TopLevelSpec } from "vega-lite";

/** One picture of a report: what it shows, and a sentence that says how to read it. */
export interface Chart {
  /** File name without ending. */
  readonly name: string;
  readonly title: string;
  readonly reading: string;
  readonly spec: TopLevelSpec;
}

// Okabe and Ito's colours, told apart with every kind of colour vision; the first four carry most reports.
const colours = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555", "#000000"];

/** What all charts share. Sizes are in pixels. */
const config = {
  background: "white",
  font: "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif",
  padding: 12,
  axis: { labelFontSize: 11, titleFontSize: 12, titleFontWeight: "normal", gridColor: "#e6e6e6", titlePadding: 8 },
  header: { labelFontSize: 12, titleFontSize: 12, labelFontWeight: "bold" },
  legend: { labelFontSize: 11, titleFontSize: 11, symbolSize: 90, titlePadding: 6, labelLimit: 400 },
  view: { stroke: "#cccccc" },
  range: { category: colours },
} as const;

/** A complete specification: shared look, inline data. */
export function chartSpec(rows: readonly object[], body: object): TopLevelSpec {
  return {
    $schema: "https://vega.github.io/schema/vega-lite/v5.json",
    config,
    data: { values: rows },
    ...body,
  } as TopLevelSpec;
}

/** As `chartSpec`, one panel a configuration, two in a row. */
export const panelsSpec = (rows: readonly object[], names: readonly string[], panel: object): TopLevelSpec =>
  chartSpec(rows, {
    facet: { field: "configuration", type: "nominal", sort: names, title: null },
    columns: 2,
    spec: { width: 330, height: 150, ...panel },
  });

/** Configurations keep their order and colour in every chart. */
export const colourOf = (names: readonly string[]): object => ({
  field: "configuration",
  type: "nominal",
  title: null,
  sort: names,
  legend: { symbolOpacity: 1 },
  scale: { domain: names, range: names.map((_, i) => colours[i % colours.length]) },
});

/** Plain numbers on logarithmic axes, `0.5`, `20`, `5,000`, at 1, 2 and 5 of each decade. */
export const logAxis = (values: readonly number[], title: string): { scale: object; axis: object } => {
  const positive = values.filter((value) => value > 0);
  const low = positive.length === 0 ? 1 : Math.min(...positive);
  const high = positive.length === 0 ? 10 : Math.max(...positive);
  const ticks: number[] = [];
  for (let decade = Math.floor(Math.log10(low)) - 1; decade <= Math.ceil(Math.log10(high)); decade++) {
    for (const digit of [1, 2, 5]) ticks.push(Number((digit * 10 ** decade).toPrecision(1)));
  }
  const from = ticks.findLast((tick) => tick <= low) ?? low;
  const to = ticks.find((tick) => tick >= high) ?? high;
  const between = ticks.filter((tick) => tick >= from && tick <= to);
  return {
    scale: { type: "log", domain: from === to ? [from / 2, to * 2] : [from, to], nice: false, clamp: true },
    axis: { title, values: between, format: low < 1 ? "~g" : ",~f" },
  };
};
