import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  chartSpec,
  colourOf,
  logAxis,
  quantileLines,
  sizes,
} from "../../packages/sheaf-server/dist/load/report/chart.js";
import { renderCharts } from "../../packages/sheaf-server/dist/load/report/render.js";
import { floorView, medianOf } from "./cells.mjs";

const panelWidth = 250;

/** Writes a picture of the closed loops' throughput and one of the open loop's latencies, where they were measured. */
export async function drawPictures(figures, folder) {
  const charts = [throughputOf(figures), latencyOf(figures)].filter((chart) => chart !== undefined);
  const drawn = await renderCharts(charts, sizes.wide);
  for (const [i, { name }] of charts.entries()) writeFileSync(join(folder, `${name}.svg`), drawn[i]);
}

/** One panel a class of texts. */
const panels = (rows, size, classes, spec) => ({
  ...chartSpec(rows, size, {}),
  autosize: "pad",
  width: undefined,
  facet: { field: "className", type: "nominal", sort: classes, title: null },
  columns: 3,
  spec: { width: panelWidth, height: 260, ...spec },
  resolve: { scale: { y: "independent" } },
});

function throughputOf({ names, plan, cells }) {
  const configurations = [...names, "floor"];
  const loads = [...plan.callers.map((callers) => ["closed", callers]), ["lists", 16]];
  const rows = plan.classes.flatMap((className) =>
    loads.flatMap(([drive, load]) => {
      const loop = drive === "lists" ? "lists of 32" : `${load}`;
      const of = (name) =>
        name === "floor"
          ? medianOf(cells, { name, className, drive: "floor", load: floorView(load, drive) }, "textsPerS")
          : medianOf(cells, { name, className, drive, load }, "textsPerS");
      if (!(of(names[0]) > 0)) return [];
      const shown = load === 1 ? names : configurations;
      return shown.map((configuration) => ({ className, loop, configuration, textsPerS: of(configuration) }));
    }),
  );
  const known = rows.filter(({ textsPerS }) => textsPerS > 0);
  if (known.length === 0) return undefined;
  return {
    name: "throughput",
    spec: (size) =>
      panels(known, size, plan.classes, {
        mark: { type: "bar" },
        encoding: {
          x: { field: "loop", type: "nominal", sort: null, axis: { title: "Callers", labelAngle: 0 } },
          xOffset: { field: "configuration", type: "nominal", sort: configurations },
          y: { field: "textsPerS", type: "quantitative", axis: { title: "Texts per second" } },
          color: colourOf(configurations),
        },
      }),
  };
}

function latencyOf({ names, plan, cells }) {
  const shares = [...new Set(cells.filter(({ drive }) => drive === "open").map(({ load }) => load))];
  const rows = plan.classes.flatMap((className) =>
    shares.flatMap((load) =>
      names.flatMap((configuration) =>
        ["p50", "p99"].map((quantile) => ({
          className,
          share: 100 * load,
          configuration,
          quantile,
          line: `${configuration} ${quantile}`,
          ms: medianOf(cells, { name: configuration, className, drive: "open", load }, `${quantile}Ms`),
        })),
      ),
    ),
  );
  const known = rows.filter(({ ms }) => ms > 0);
  if (known.length === 0) return undefined;
  const shown = names.filter((name) => known.some(({ configuration }) => configuration === name));
  return {
    name: "open-loop",
    spec: (size) =>
      panels(known, size, plan.classes, {
        mark: { type: "line", point: { filled: true, size: 50 } },
        encoding: {
          x: {
            field: "share",
            type: "quantitative",
            scale: { zero: false },
            axis: { title: "Load, % of capacity", values: shares.map((share) => 100 * share) },
          },
          y: {
            field: "ms",
            type: "quantitative",
            ...logAxis(
              known.map(({ ms }) => ms),
              "Latency (ms, log scale)",
            ),
          },
          color: colourOf(shown),
          ...quantileLines,
        },
      }),
  };
}
