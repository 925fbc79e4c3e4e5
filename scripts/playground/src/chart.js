import { figures, shownMs } from "../../../packages/sheaf-server/dist/shared/terminal.js";

/** @import { SimulatedLatency } from "sheaf/internal/tuning" */

const namespace = "http://www.w3.org/2000/svg";
/** Steps of a distribution on its logarithmic axis. */
const bins = 72;

/**
 * Three distributions over one logarithmic axis, with p50, p95 and p99.
 * @param {SVGSVGElement} svg
 * @param {readonly { name: string, kind: string, latencyMs: SimulatedLatency, values: Float32Array }[]} lanes
 */
export function drawLatencies(svg, lanes) {
  const width = svg.clientWidth || 720;
  const isNarrow = width < 500;
  const rowHeight = 94;
  const height = rowHeight * lanes.length + 30;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.style.height = `${height}px`;
  const some = lanes.filter(({ values }) => values.length > 0);
  const low = 0.8 * Math.min(...some.map(({ values }) => Math.max(0.001, Math.min(...values))), 1e9);
  const high = 1.3 * Math.max(...some.map(({ latencyMs }) => latencyMs.p99), low * 8);
  const left = 4;
  const right = width - (isNarrow ? 8 : 24);
  const x = (/** @type {number} */ ms) =>
    left + (right - left) * Math.min(1, Math.max(0, Math.log(ms / low) / Math.log(high / low)));
  const marks = [];
  for (const tick of ticksOf(low, high, isNarrow)) {
    marks.push(make("line", { x1: x(tick), x2: x(tick), y1: 0, y2: height - 24, class: "grid" }));
    marks.push(make("text", { x: x(tick), y: height - 6, class: "tick", "text-anchor": "middle" }, shownMs(tick)));
  }
  lanes.forEach(({ name, kind, latencyMs, values }, lane) => {
    const base = rowHeight * (lane + 1) - 4;
    const quantiles = /** @type {const} */ (["p50", "p95", "p99"]);
    marks.push(make("text", { x: left, y: base - 70, class: "name" }, name));
    const written = isNarrow ? /** @type {const} */ (["p50", "p99"]) : quantiles;
    const said = written.map((quantile) => `${quantile} ${shownMs(latencyMs[quantile])}`).join("  ·  ");
    marks.push(make("text", { x: right, y: base - 70, class: "quantile", "text-anchor": "end" }, said));
    marks.push(make("line", { x1: left, x2: right, y1: base, y2: base, class: "base" }));
    if (values.length === 0) return;
    marks.push(make("path", { d: shapeOf(values, low, high, x, base, 48), class: `shape ${kind}` }));
    for (const quantile of quantiles) {
      const at = x(latencyMs[quantile]);
      marks.push(
        make("line", { x1: at, x2: at, y1: base - (quantile === "p50" ? 34 : 18), y2: base, class: `mark ${kind}` }),
      );
    }
  });
  svg.replaceChildren(...marks);
}

/**
 * A smoothed histogram, closed at its base.
 * @param {Float32Array} values
 * @param {number} low
 * @param {number} high
 * @param {(ms: number) => number} x
 * @param {number} base
 * @param {number} most its height
 */
function shapeOf(values, low, high, x, base, most) {
  const counts = new Float64Array(bins);
  const span = Math.log(high / low);
  for (const ms of values) {
    const at = Math.floor((Math.log(Math.max(ms, low) / low) / span) * bins);
    if (at < bins) counts[at]++;
  }
  const kernel = [0.06, 0.24, 0.4, 0.24, 0.06];
  const smooth = Array.from(counts, (_, at) =>
    kernel.reduce((sum, weight, k) => sum + weight * (counts[at + k - 2] ?? 0), 0),
  );
  const peak = Math.max(...smooth);
  const points = smooth.map(
    (count, at) =>
      `${x(low * Math.exp(((at + 0.5) / bins) * span)).toFixed(1)} ${(base - (count / peak) ** 0.6 * most).toFixed(1)}`,
  );
  return `M${x(low).toFixed(1)} ${base}L${points.join("L")}L${x(high).toFixed(1)} ${base}Z`;
}

function ticksOf(/** @type {number} */ low, /** @type {number} */ high, /** @type {boolean} */ isNarrow) {
  const isWide = high / low > (isNarrow ? 60 : 1000);
  const ticks = [];
  for (let decade = Math.floor(Math.log10(low)); decade <= Math.log10(high); decade++)
    for (const digit of isWide ? [1] : [1, 2, 5]) ticks.push(Number((digit * 10 ** decade).toPrecision(1)));
  return ticks.filter((tick) => tick >= low * 1.1 && tick <= high * 0.93);
}

/**
 * Answers a second over time, and the calls that began.
 * @param {SVGSVGElement} svg
 * @param {readonly { kind: string, perS: readonly number[] }[]} lanes
 * @param {readonly number[]} begunPerS
 */
export function drawAnswers(svg, lanes, begunPerS) {
  const width = svg.clientWidth || 720;
  const height = 150;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.style.height = `${height}px`;
  const seconds = begunPerS.length;
  const most = Math.max(...begunPerS, ...lanes.flatMap(({ perS }) => perS.slice(0, seconds)));
  const x = (/** @type {number} */ second) => 4 + ((width - 12) * second) / Math.max(1, seconds);
  const y = (/** @type {number} */ perS) => height - 24 - ((height - 44) * perS) / most;
  const line = (/** @type {readonly number[]} */ perS) =>
    perS
      .slice(0, seconds)
      .map((count, second) => `${second === 0 ? "M" : "L"}${x(second + 0.5).toFixed(1)} ${y(count).toFixed(1)}`)
      .join("");
  const steps = begunPerS
    .map(
      (count, second) =>
        `${x(second).toFixed(1)} ${y(count).toFixed(1)}L${x(second + 1).toFixed(1)} ${y(count).toFixed(1)}`,
    )
    .join("L");
  const marks = [
    make("path", { d: `M${x(0)} ${y(0)}L${steps}L${x(seconds)} ${y(0)}Z`, class: "begun" }),
    make("text", { x: 4, y: 12, class: "tick" }, `${figures(most)} a second`),
    ...lanes.map(({ kind, perS }) => make("path", { d: line(perS), class: `line ${kind}` })),
  ];
  for (let second = 0; second <= seconds; second += seconds > 40 ? 20 : 5)
    marks.push(
      make(
        "text",
        {
          x: Math.min(x(second), width - 4),
          y: height - 6,
          class: "tick",
          "text-anchor": second === 0 ? "start" : second > seconds - 3 ? "end" : "middle",
        },
        `${second} s`,
      ),
    );
  svg.replaceChildren(...marks);
}

function make(/** @type {string} */ name, /** @type {Record<string, string | number>} */ attributes, text = "") {
  const made = document.createElementNS(namespace, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.textContent = text;
  return made;
}
