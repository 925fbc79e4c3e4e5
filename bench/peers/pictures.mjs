import { writeFileSync } from "node:fs";
import { chartSpec, colourOf, logAxis, panelsSpec, sizes } from "../../packages/sheaf-server/dist/load/report/chart.js";
import { renderCharts } from "../../packages/sheaf-server/dist/load/report/render.js";
import { median } from "../lib/machine.mjs";
import { keptUp } from "./drives.mjs";

const quantiles = { p50: "p50", p99: "p99", p999: "p99.9" };
const drives = { open: "Poisson arrivals", burst: "bursts" };

/** Writes the pictures of a comparison into a folder, and returns their lines in Markdown. */
export async function drawPictures({ runs }, folder) {
  const charts = Object.keys(drives).flatMap((drive) => chartsOf(drive, runs));
  const drawn = await renderCharts(charts, sizes.wide);
  for (const [i, { name }] of charts.entries()) writeFileSync(`${folder}/${name}.svg`, drawn[i]);
  return charts.map(({ name, title, reading }) => `![${title}](${name}.svg)\n\n${title}. ${reading}`);
}

function chartsOf(drive, runs) {
  const names = [...new Set(runs.map(({ server }) => server))];
  const rows = names.flatMap((configuration) => rowsOf(drive, configuration, runs));
  if (rows.length === 0) return [];
  const y = (shown) => ({
    field: "ms",
    type: "quantitative",
    ...logAxis(
      shown.map(({ ms }) => ms),
      "Latency (ms, log scale)",
    ),
  });
  const x = {
    field: "rate",
    type: "quantitative",
    scale: { zero: true, nice: true },
    axis: { title: "Requests per second", format: ",~f", tickCount: 6 },
  };
  const line = { type: "line", point: { filled: true, size: 40 }, strokeWidth: 2, clip: true };
  const tails = rows.filter(({ quantile }) => quantile === "p99");
  return [
    {
      name: `${drive}-p99`,
      title: `p99 by rate, ${drives[drive]}`,
      reading: "Lower is better. A line ends at the last rate that its server kept up with.",
      spec: (size) =>
        chartSpec(tails, size, { height: 320, mark: line, encoding: { x, y: y(tails), color: colourOf(names) } }),
    },
    {
      name: drive,
      title: `Latency by rate and server, ${drives[drive]}`,
      reading: "From below: p50 (dashed), p99 (solid), p99.9 (dotted).",
      spec: (size) =>
        panelsSpec(rows, size, names, {
          mark: line,
          encoding: {
            x,
            y: y(rows),
            color: { ...colourOf(names), legend: null },
            detail: { field: "quantile" },
            strokeDash: {
              field: "quantile",
              type: "nominal",
              legend: null,
              scale: {
                domain: Object.values(quantiles),
                range: [
                  [5, 4],
                  [1, 0],
                  [1, 3],
                ],
              },
            },
          },
        }),
    },
  ];
}

/** Medians over the rounds, at the rates that the server kept up with in each. */
function rowsOf(drive, configuration, runs) {
  const own = runs.filter(({ server, [drive]: results }) => server === configuration && results !== undefined);
  const rates = new Set(own.flatMap((run) => Object.keys(run[drive])));
  return [...rates].flatMap((rate) => {
    const results = own.map((run) => run[drive][rate]);
    if (!results.every((result) => result !== undefined && keptUp(result))) return [];
    return Object.entries(quantiles).map(([field, quantile]) => ({
      configuration,
      rate: Number(rate),
      quantile,
      ms: median(results.map(({ latencyMs }) => latencyMs[field])),
    }));
  });
}
