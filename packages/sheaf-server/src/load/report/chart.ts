import type { TopLevelSpec } from "vega-lite";

export interface ChartSize {
  readonly width: number;
  /** Panels in a row, where there are several. */
  readonly columns: number;
}

/** On a page or as a file, and on a phone. */
export const sizes = { wide: { width: 960, columns: 2 }, narrow: { width: 350, columns: 1 } } as const;

/** One picture of a report: its subject, and a sentence that says how to read it. */
export interface Chart {
  /** File name without ending. */
  readonly name: string;
  readonly title: string;
  readonly reading: string;
  readonly spec: (size: ChartSize) => TopLevelSpec;
}

// Okabe and Ito's colours, distinct with every kind of colour vision, where they stand out from white; then others.
const colours = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#8A6A00", "#6B4C9A"];

/** Each colour of a picture and its counterpart on a dark page. */
export const onDark: Readonly<Record<string, string>> = {
  "#0072B2": "#4aa8e8",
  "#D55E00": "#ff8f47",
  "#009E73": "#31c79a",
  "#CC79A7": "#e5a0c6",
  "#8A6A00": "#f2bb45",
  "#6B4C9A": "#b79be8",
  "#555555": "#a8adb5",
  "#000000": "#ffffff",
  black: "#ffffff",
  "#e6e6e6": "#30343b",
  "#cccccc": "#444a53",
  "#888": "#6b7280",
};

/** The base of all charts. Sizes are in pixels. */
const config = {
  background: "white",
  font: "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif",
  padding: 8,
  axis: { labelFontSize: 11, titleFontSize: 12, titleFontWeight: "normal", gridColor: "#e6e6e6", titlePadding: 8 },
  header: { labelFontSize: 12, titleFontSize: 12, labelFontWeight: "bold" },
  legend: { labelFontSize: 11, titleFontSize: 11, symbolSize: 90, titlePadding: 6, labelLimit: 300, orient: "top" },
  view: { stroke: "#cccccc" },
  range: { category: colours },
} as const;

/** A complete specification: shared look, inline data. A `height` in `body` is of the plot; its width is all there is. */
export function chartSpec(rows: readonly object[], { width }: ChartSize, body: object): TopLevelSpec {
  return {
    $schema: "https://vega.github.io/schema/vega-lite/v5.json",
    config,
    autosize: { type: "fit-x", contains: "padding" },
    width,
    data: { values: rows },
    ...body,
  } as TopLevelSpec;
}

// The part of a panel's row that the axis, its title and the padding take.
const panelAxisWidth = 84;
const betweenPanels = 20;

/** As `chartSpec`, one panel a configuration. */
export function panelsSpec(
  rows: readonly object[],
  { width, columns: most }: ChartSize,
  names: readonly string[],
  panel: object,
): TopLevelSpec {
  const columns = Math.max(1, Math.min(most, names.length));
  const each = Math.floor((width - panelAxisWidth - betweenPanels * (columns - 1)) / columns);
  return {
    ...chartSpec(rows, { width, columns }, {}),
    autosize: "pad",
    width: undefined,
    facet: { field: "configuration", type: "nominal", sort: names, title: null },
    columns,
    spec: { width: each, height: 150, ...panel },
  } as unknown as TopLevelSpec;
}

/** Configurations keep their order and colour in every chart. */
export const colourOf = (names: readonly string[]): object => ({
  field: "configuration",
  type: "nominal",
  title: null,
  sort: names,
  legend: { symbolOpacity: 1, columns: 3 },
  scale: { domain: names, range: names.map((_, i) => colours[i % colours.length]) },
});

/** A channel that shows a number; `more` of it as Vega-Lite takes it. */
export const quantity = (field: string, more: object = {}): object => ({ field, type: "quantitative", ...more });

/** Lines of both quantiles of each configuration: p99 solid, p50 dashed. */
export const quantileLines = {
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
} as const;

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
