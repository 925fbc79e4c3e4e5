import { bytes, count, duration, number, percent, plural, times } from "./format.js";
import { reasonOf } from "./reasons.js";

/**
 * @import { BatcherTick, Hello, Tick } from "../ticks.ts"
 * @import { History } from "./history.js"
 */

export const byId = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @param {string} tag @param {Record<string, string>} attributes @param {(Node | string)[]} children */
export function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** @typedef {Hello["batchers"][number]} Shown */

/**
 * The figures at the top: each a value, and a line that says what it is made of.
 * @param {Shown} shown @param {BatcherTick} tick @param {History} history
 */
export function showTiles(shown, { stats }, history) {
  const minute = history.over(60);
  const now = history.over(3);
  const size = minute.batches === 0 ? null : minute.batchedItems / minute.batches;
  const most = shown.maxBatchSize;
  const speedup = stats.speedup ?? stats.expectedSpeedup;
  const unanswered = minute.error + minute.timeout + minute.rejected;
  const { cost, costModel } = stats;
  const tiles = [
    tile("Throughput", number(now.ok / now.seconds), "items/s", `${count(stats.items.ok)} answered since the start`),
    tile(
      "Latency p99",
      ...split(stats.latencyMs.max === 0 ? null : duration(stats.latencyMs.p99)),
      `p50 ${duration(stats.latencyMs.p50)}, p95 ${duration(stats.latencyMs.p95)}, last minute`,
    ),
    tile(
      "Batch size",
      size === null ? "–" : number(size),
      most === null ? "" : `of ${count(most)}`,
      most === null || size === null ? "mean of the last minute" : `${percent(size / most)} filled in the last minute`,
      most === null || size === null ? undefined : size / most,
    ),
    tile(
      "Speed-up",
      speedup === null ? "–" : times(speedup),
      "",
      speedup === null
        ? "known once batches of two sizes have run"
        : `${percent(Math.max(0, 1 - 1 / speedup))} of run time saved, ${stats.speedup === null ? "by the cost model" : "measured"}`,
    ),
    tile(
      "Waiting",
      count(stats.queued),
      plural(stats.queued, "item").split(" ")[1],
      `${plural(stats.inFlight, "batch", "batches")} running; half wait ${duration(stats.queueWaitMs.p50)} or less`,
    ),
    tile(
      "Not answered",
      count(unanswered),
      "",
      `last minute: ${count(minute.error)} failed, ${count(minute.timeout)} too late, ${count(minute.rejected)} refused`,
      undefined,
      unanswered > 0 ? "bad" : "",
    ),
  ];
  if (cost !== null) {
    const saved = cost.perItemUnbatched > 0 ? 1 - cost.perItem / cost.perItemUnbatched : 0;
    tiles.push(
      tile(
        "Cost",
        number(cost.total),
        "so far",
        `${cost.perItem.toPrecision(3)} an item, ${percent(saved)} less than one by one`,
      ),
    );
  } else if (costModel !== null) {
    tiles.push(
      tile(
        "A run costs",
        ...split(duration(costModel.fixedMs)),
        `and ${duration(costModel.perItemMs)} for each item (fit: R² ${costModel.r2.toFixed(2)})`,
      ),
    );
  }
  byId("tiles").replaceChildren(...tiles);
}

/** A value with a unit as two texts. @returns {[string, string]} */
function split(/** @type {string | null} */ text) {
  if (text === null) return ["–", ""];
  const [value, unit = ""] = text.split(" ");
  return [value, unit];
}

/**
 * @param {string} name @param {string} value @param {string} unit @param {string} detail
 * @param {number | undefined} [filled] 0…1, drawn as a meter
 * @param {string} [mood]
 */
function tile(name, value, unit, detail, filled, mood = "") {
  const figure = element("dd", { class: "figure" }, value, element("small", {}, unit === "" ? "" : ` ${unit}`));
  const made = element("div", { class: `tile card ${mood}` }, element("dt", {}, name), figure);
  if (filled !== undefined) {
    const bar = element("span", { class: "meter" });
    bar.style.setProperty("--share", String(Math.min(1, filled)));
    made.append(element("dd", { class: "meter-row", "aria-hidden": "true" }, bar));
  }
  made.append(element("dd", { class: "detail" }, detail));
  return made;
}

/** Why batches left in the last two minutes, the commonest first. @param {History} history */
export function showReasons(history) {
  const { reasons: counted, batches } = history.over(120);
  const rows = Object.entries(counted)
    .sort(([, a], [, b]) => b - a)
    .map(([name, amount]) => {
      const { label, text, colour } = reasonOf(name);
      const bar = element("span", { class: "meter" });
      bar.style.setProperty("--share", String(amount / batches));
      bar.style.setProperty("--colour", `var(${colour})`);
      return element(
        "li",
        {},
        element("div", { class: "row" }, element("b", {}, label), element("span", {}, percent(amount / batches))),
        bar,
        element("p", { class: "hint" }, `${plural(amount, "batch", "batches")}: ${text}`),
      );
    });
  byId("reasons").replaceChildren(...(rows.length > 0 ? rows : [element("li", { class: "hint" }, "No batch yet.")]));
}

const stripLength = 48;

/** The last batches as bars. @param {Shown} shown @param {History} history */
export function showRecent({ maxBatchSize }, history) {
  const batches = history.recent(stripLength);
  const largest = maxBatchSize ?? Math.max(1, ...batches.map(([size]) => size));
  const bars = batches.map(([size, reason, hasFailed]) => {
    const bar = element("i", { "data-failed": String(hasFailed) });
    bar.style.setProperty("--share", String(size / largest));
    bar.style.setProperty("--colour", `var(${hasFailed ? "--bad" : reasonOf(reason).colour})`);
    return bar;
  });
  const strip = byId("recent");
  strip.replaceChildren(...bars);
  const sizes = batches.map(([size]) => size);
  strip.setAttribute(
    "aria-label",
    sizes.length === 0 ? "No batch yet" : `Sizes of the last batches: ${sizes.slice(-12).join(", ")}`,
  );
}

/** @param {readonly string[]} advice */
export function showAdvice(advice) {
  byId("advice").replaceChildren(...advice.map((text) => element("li", {}, text)));
}

/** @param {BatcherTick} tick @param {Tick} all */
export function showWorkers({ workers = [], restarts = 0 }, { cpuCores, memoryBytes }) {
  const items = workers.map(({ id, state }) =>
    element("li", { "data-state": state }, element("span", { class: "dot" }), `Worker ${id}`, element("b", {}, state)),
  );
  const none = element("li", { class: "hint" }, "This model runs in the server's own process.");
  byId("workers").replaceChildren(...(items.length > 0 ? items : [none]));
  const restarted = restarts > 0 ? `${plural(restarts, "restart")} so far. ` : "";
  byId("process").textContent = `${restarted}The process uses ${number(cpuCores)} CPU cores and ${bytes(memoryBytes)}.`;
}

/**
 * A row per model, where there are several.
 * @param {readonly Shown[]} batchers @param {Tick} tick @param {readonly History[]} histories
 */
export function showAll(batchers, tick, histories) {
  byId("all").hidden = batchers.length < 2;
  const rows = batchers.map(({ name, maxBatchSize }, index) => {
    const { stats, state } = tick.batchers[index];
    const minute = histories[index].over(60);
    const now = histories[index].over(3);
    const size = minute.batches === 0 ? null : minute.batchedItems / minute.batches;
    const speedup = stats.speedup ?? stats.expectedSpeedup;
    return element(
      "tr",
      {},
      element("th", { scope: "row" }, name),
      ...[
        state,
        number(now.ok / now.seconds),
        size === null ? "–" : number(size),
        size === null || maxBatchSize === null ? "–" : percent(size / maxBatchSize),
        count(stats.queued),
        stats.latencyMs.max === 0 ? "–" : duration(stats.latencyMs.p99),
        speedup === null ? "–" : times(speedup),
      ].map((text) => element("td", {}, text)),
    );
  });
  byId("all-rows").replaceChildren(...rows);
}
