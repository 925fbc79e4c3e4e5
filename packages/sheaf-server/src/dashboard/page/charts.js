import uPlot from "./uPlot.js";
import { shareSteps, thinned } from "./format.js";
import { shownS } from "./history.js";

/**
 * A series of a time chart. Colours are names of custom properties, read at every draw: a change of theme needs no
 * new chart.
 * @typedef {{ label: string, colour: string, fill?: string, width?: number, none?: string, bars?: boolean }} Series
 */

/** A canvas cannot read light-dark(): the colour of an element is resolved. */
const probe = document.body.appendChild(Object.assign(document.createElement("i"), { hidden: true }));
const css = (/** @type {string} */ name) => {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
};
const font = () => `11px ${getComputedStyle(document.body).fontFamily}`;
/** @type {Set<uPlot>} */
const plots = new Set();

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const plot of plots) plot.redraw();
});

/** @type {uPlot.Axis} */
const axis = {
  stroke: () => css("--muted"),
  grid: { stroke: () => css("--grid"), width: 1 },
  ticks: { show: false },
  gap: 6,
};

/**
 * Lines or bars over the last two minutes, with a legend that shows the values under the cursor, else the latest.
 * @param {string} id of the plot's element; its legend is `id-legend`
 * @param {{
 *   series: Series[],
 *   bands?: { between: [number, number], fill: string }[],
 *   format: (value: number) => string,
 *   tick?: (value: number) => string,
 *   smallestMax: number,
 * }} options
 */
export function timeChart(id, { series, bands = [], format, tick = format, smallestMax }) {
  const element = /** @type {HTMLElement} */ (document.getElementById(id));
  const legend = /** @type {HTMLElement} */ (document.getElementById(`${id}-legend`));
  const entries = series.map(({ label, colour }) => legendEntry(legend, label, colour));
  /** @type {uPlot.AlignedData} */
  let data = [[], ...series.map(() => [])];
  /** Moments to mark, in seconds before now. @type {readonly number[]} */
  let marks = [];

  const show = (/** @type {number | null | undefined} */ index) => {
    const at = index ?? data[0].length - 1;
    entries.forEach((entry, i) => {
      const value = data[i + 1][at];
      entry.textContent = typeof value === "number" ? format(value) : (series[i].none ?? "");
    });
  };
  const plot = new uPlot(
    {
      width: 300,
      height: 170,
      padding: [8, 18, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
      scales: {
        x: { time: false, range: () => [-span(data[0][0]), 0] },
        y: { range: (_, _min, max) => [0, Math.max(smallestMax, (max ?? 0) * 1.12)] },
      },
      axes: [
        {
          ...axis,
          font: font(),
          size: 24,
          grid: { show: false },
          splits: () => [1, 0.5, 0].map((share) => -share * span(data[0][0])),
          values: (_, at) => at.map(ago),
        },
        { ...axis, font: font(), size: 58, space: 36, values: (_, ticks) => ticks.map((value) => tick(value)) },
      ],
      series: [
        {},
        ...series.map(({ label, colour, fill, width = 2, bars = false }) => ({
          label,
          stroke: () => css(colour),
          ...(fill === undefined ? {} : { fill: () => css(fill) }),
          width: bars ? 0 : width,
          ...(bars ? { paths: barPaths({ size: [0.8, 18], align: -1 }) } : {}),
          // A line needs two points: one alone is drawn as a dot.
          points: {
            show: !bars,
            size: 6,
            width: 0,
            fill: () => css(colour),
            filter: (/** @type {uPlot} */ _, /** @type {number} */ index) => alone(data[index]),
          },
          spanGaps: false,
        })),
      ],
      bands: bands.map(({ between, fill }) => ({ series: between, fill: () => css(fill) })),
      hooks: {
        setCursor: [({ cursor }) => show(cursor.idx)],
        draw: [
          (plot) =>
            drawMarks(
              plot,
              marks.filter((s) => s > -span(data[0][0])),
            ),
        ],
      },
    },
    data,
    element,
  );
  follow(plot, element);
  return {
    /** @param {(number | null)[][]} columns @param {string} summary for screen readers @param {readonly number[]} marked */
    set(columns, summary, marked = []) {
      marks = marked;
      data = /** @type {uPlot.AlignedData} */ (/** @type {unknown} */ (columns));
      plot.setData(data, true);
      show(plot.cursor.left !== undefined && plot.cursor.left >= 0 ? plot.cursor.idx : undefined);
      element.setAttribute("aria-label", summary);
    },
  };
}

const barPaths = /** @type {NonNullable<typeof uPlot.paths.bars>} */ (uPlot.paths.bars);

/** Dashed lines from the bottom to the top. @param {uPlot} plot @param {readonly number[]} moments */
function drawMarks({ ctx, bbox, valToPos }, moments) {
  ctx.save();
  ctx.strokeStyle = css("--muted");
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const moment of moments) {
    const x = Math.round(valToPos(moment, "x", true));
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

/** Indices of the values with none on either side. @param {uPlot.AlignedData[number] | undefined} values */
function alone(values) {
  const at = (/** @type {number} */ index) => values?.[index] ?? null;
  return Array.from({ length: values?.length ?? 0 }, (_, index) => index).filter(
    (index) => at(index) !== null && at(index - 1) === null && at(index + 1) === null,
  );
}

/** How far back a chart looks, in seconds: no further than it must to show its oldest point. */
const span = (/** @type {number | undefined} */ oldestS) =>
  [30, 60].find((seconds) => seconds >= -(oldestS ?? 0)) ?? shownS;

const ago = (/** @type {number} */ seconds) =>
  seconds === 0 ? "now" : seconds > -60 ? `${-seconds} s ago` : `${-seconds / 60} min ago`;

export function barChart(/** @type {string} */ id, /** @type {string} */ colour) {
  const element = /** @type {HTMLElement} */ (document.getElementById(id));
  /** @type {string[]} */
  let labels = [];
  const plot = new uPlot(
    {
      width: 300,
      height: 170,
      legend: { show: false },
      cursor: { show: false },
      scales: {
        x: { time: false, range: () => [-0.6, Math.max(0.6, labels.length - 0.4)] },
        y: { range: (_, _min, max) => [0, shareSteps(max ?? 0).at(-1) ?? 1] },
      },
      axes: [
        {
          ...axis,
          font: font(),
          size: 24,
          grid: { show: false },
          splits: () => labels.map((_, index) => index),
          values: () => thinned(labels),
        },
        {
          ...axis,
          font: font(),
          size: 58,
          splits: (_, _axis, _min, max) => shareSteps(max),
          values: (_, ticks) => ticks.map((tick) => `${Math.round(tick * 100)} %`),
        },
      ],
      series: [
        {},
        {
          stroke: () => css(colour),
          fill: () => css(colour),
          width: 0,
          points: { show: false },
          paths: barPaths({ size: [0.82, 56], radius: 0.15 }),
        },
      ],
    },
    [[], []],
    element,
  );
  follow(plot, element);
  return {
    /** @param {string[]} names @param {number[]} values @param {string} summary */
    set(names, values, summary) {
      labels = names;
      plot.setData([names.map((_, index) => index), values], true);
      element.setAttribute("aria-label", summary);
    },
  };
}

/** As wide as its element, also after a resize. */
function follow(/** @type {uPlot} */ plot, /** @type {HTMLElement} */ element) {
  plots.add(plot);
  new ResizeObserver(() => {
    const { clientWidth: width, clientHeight: height } = element;
    if (width > 0) plot.setSize({ width, height });
  }).observe(element);
}

function legendEntry(/** @type {HTMLElement} */ legend, /** @type {string} */ label, /** @type {string} */ colour) {
  const entry = document.createElement("span");
  const dot = document.createElement("i");
  dot.style.setProperty("--dot", `var(${colour})`);
  const value = document.createElement("b");
  entry.append(dot, `${label} `, value);
  legend.append(entry);
  return value;
}
