import { bytes, count, duration, number, percent, plural } from "./format.js";
import { gainOf } from "./gain.js";
import { reasonOf, sizeReasonText } from "./reasons.js";

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
 * The figures of the last minute: each a value, and where it helps a line that says how it is made up.
 * @param {Shown} shown @param {BatcherTick} tick @param {History} history
 * @param {number} keptOut items that bounds of tenants kept out of every queue
 */
export function showTiles(shown, { stats }, history, keptOut) {
  const minute = history.over(60);
  const size = minute.batches === 0 ? null : minute.batchedItems / minute.batches;
  const most = shown.maxBatchSize;
  // Users and a backlog in one figure would say nothing.
  const { latencyMs } = stats.lanes?.live ?? stats;
  const latency = minute.ok === 0 || latencyMs.max === 0 ? null : latencyMs;
  const unanswered = [
    [minute.error, "failed"],
    [minute.timeout, "too late"],
    [minute.rejected, "refused"],
    [keptOut, "over a tenant’s limit"],
  ].filter(([amount]) => Number(amount) > 0);
  const answered = minute.ok + minute.hits;
  const tiles = [
    tile(
      "Answered",
      answered === 0 ? "–" : count(answered),
      ["", "item"][answered] ?? "items",
      answered === 0 ? "" : `${number(answered / minute.seconds)} a second`,
    ),
    tile(
      "Latency p99",
      ...split(latency === null ? null : duration(latency.p99)),
      latency === null ? "" : `half within ${duration(latency.p50)}${stats.lanes === null ? "" : ", live calls"}`,
    ),
    tile(
      "Items in a run",
      size === null ? "–" : number(size),
      size === null || most === null ? "" : `of ${count(most)}`,
      size === null ? "" : plural(minute.batches, "run"),
      most === null || size === null ? undefined : size / most,
    ),
    tile(
      "Not answered",
      count(minute.error + minute.timeout + minute.rejected + keptOut),
      "",
      unanswered.map(([amount, how]) => `${count(Number(amount))} ${how}`).join(", "),
      undefined,
      unanswered.length > 0 ? "bad" : "",
    ),
  ];
  if (history.points.at(-1)?.second.cache) {
    const asked = minute.hits + minute.misses;
    const share = minute.hits / asked;
    tiles.push(
      tile(
        "From the cache",
        ...split(asked === 0 ? null : percent(share)),
        asked === 0 ? "" : `${plural(minute.hits, "item")}, ${plural(Math.round(minute.savedRuns), "run")} saved`,
        asked === 0 ? undefined : share,
      ),
    );
  }
  byId("tiles").replaceChildren(...tiles);
  byId("cost").textContent = [slotsOf(stats), costOf(stats)].filter((text) => text !== "").join(" ");
}

/** How many slots the load takes. @param {Pick<BatcherTick["stats"], "slotsNeeded">} stats */
export function slotsOf({ slotsNeeded }) {
  if (slotsNeeded === null) return "";
  const { slots, low, high, withinMs } = slotsNeeded;
  const range = low === high ? "" : ` (${count(low)} on average, ${count(high)} in the busiest second)`;
  return `To answer 99 % of the items within ${duration(withinMs)}, the last minute takes ${plural(slots, "slot")}${range}.`;
}

/** The cost since the start: no figure of the last minute. @param {BatcherTick["stats"]} stats */
function costOf({ cost, batches }) {
  if (cost === null || batches === 0) return "";
  const saved = cost.perItemUnbatched > 0 ? 1 - cost.perItem / cost.perItemUnbatched : 0;
  return `Cost since the start: ${number(cost.total)}, ${cost.perItem.toPrecision(3)} an item, ${percent(saved)} less than one by one.`;
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
  const figure = element("dd", { class: "figure" }, value, ...(unit === "" ? [] : [element("small", {}, ` ${unit}`)]));
  const made = element("div", { class: `tile card ${mood}` }, element("dt", {}, name), figure);
  if (filled !== undefined) {
    const bar = element("span", { class: "meter" });
    bar.style.setProperty("--share", String(Math.min(1, filled)));
    made.append(element("dd", { class: "meter-row", "aria-hidden": "true" }, bar));
  }
  if (detail !== "") made.append(element("dd", { class: "detail" }, detail));
  return made;
}

/** Why batches left in the last two minutes, the commonest first. @param {History} history */
export function showReasons(history) {
  const { reasons: counted, sizeReasons, batches } = history.over(120);
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
        element("p", { class: "hint" }, `${plural(amount, "run")}: ${text}`),
      );
    });
  byId("reasons").replaceChildren(...(rows.length > 0 ? rows : [element("li", { class: "hint" }, "No run yet.")]));
  const sizes = Object.entries(sizeReasons)
    .sort(([, a], [, b]) => b - a)
    .map(([name, amount]) => element("li", { class: "hint" }, `${plural(amount, "run")}: ${sizeReasonText(name)}`));
  byId("size-reasons-title").hidden = sizes.length === 0;
  byId("size-reasons").replaceChildren(...sizes);
}

const stripLength = 48;

/** The last runs as bars, with the colours that they have. @param {Shown} shown @param {History} history */
export function showRecent({ maxBatchSize }, history) {
  const batches = history.recent(stripLength);
  const largest = maxBatchSize ?? Math.max(1, ...batches.map(([size]) => size));
  /** @type {Map<string, string>} */
  const colours = new Map();
  const bars = batches.map(([size, reason, failedItems]) => {
    const { label, colour } =
      failedItems === 0
        ? reasonOf(reason)
        : { label: failedItems < size ? "Failed in part" : "Failed", colour: failedItems < size ? "--warn" : "--bad" };
    colours.set(label, colour);
    const bar = element("i", { "data-failed": String(failedItems > 0), title: `${plural(size, "item")}: ${label}` });
    bar.style.setProperty("--share", String(size / largest));
    bar.style.setProperty("--colour", `var(${colour})`);
    return bar;
  });
  const strip = byId("recent");
  strip.replaceChildren(...bars);
  const sizes = batches.map(([size]) => size);
  strip.setAttribute(
    "aria-label",
    sizes.length === 0 ? "No run yet" : `Items in the last runs: ${sizes.slice(-12).join(", ")}`,
  );
  byId("recent-what").textContent =
    sizes.length === 0
      ? "No run in the last two minutes"
      : `Last ${sizes.length === 1 ? "run" : `${sizes.length} runs`}; the top is ${plural(largest, "item")}`;
  byId("recent-legend").replaceChildren(...[...colours].map(([label, colour]) => legendEntry(label, colour)));
}

export function legendEntry(/** @type {string} */ label, /** @type {string} */ colour) {
  const dot = element("i", {});
  dot.style.setProperty("--dot", `var(${colour})`);
  return element("span", {}, dot, label);
}

/** Policy and limits in force. @param {Shown} shown */
export function showLimits({ limits }) {
  const rows = limits.flatMap(({ label, value }) => [element("dt", {}, label), element("dd", {}, value)]);
  byId("limits").replaceChildren(...rows);
}

/** @param {readonly string[]} advice */
export function showAdvice(advice) {
  byId("advice").replaceChildren(...advice.map((text) => element("li", {}, text)));
}

/** @param {BatcherTick} tick @param {Tick} all */
export function showWorkers({ workers, restarts = 0 }, { cpuCores, memoryBytes, fronts = [] }) {
  const items = (workers ?? []).map(({ id, state }) =>
    element("li", { "data-state": state }, element("span", { class: "dot" }), `Worker ${id}`, element("b", {}, state)),
  );
  const none = element(
    "li",
    { class: "hint" },
    workers === undefined ? "It runs in this process." : "Its workers are on other machines.",
  );
  byId("workers").replaceChildren(...(items.length > 0 ? items : [none]));
  const restarted = restarts > 0 ? `${plural(restarts, "restart")} so far. ` : "";
  byId("process").textContent =
    `${restarted}The process used ${number(cpuCores)} CPU cores in the last second, and ${bytes(memoryBytes)}.` +
    fronts.map(({ name, coreShare }) => ` ${name.replace("f", "F")}: ${percent(coreShare)} of a core.`).join("");
}

/** A row per limit of the service that is called. @param {Tick} tick */
export function showRateLimits({ rateLimits = [] }) {
  byId("rate-limits").hidden = rateLimits.length === 0;
  const known = (/** @type {number | null} */ amount) => (amount === null ? "–" : count(Math.round(amount)));
  const rows = rateLimits.map(({ model, kind, perMinute, left, used, refused, waiting, tenants }) => {
    const waitingTenants = tenants.map((tenant) => `${tenant.name} ${count(tenant.waiting)}`).join(", ");
    const cells = [known(perMinute), known(left), known(used), count(waiting.live), count(waiting.bulk), waitingTenants || "–", count(refused)]; // prettier-ignore
    const name = element("th", { scope: "row" }, `${model || "(no model)"}: ${kind}`);
    return element("tr", {}, name, ...cells.map((text) => element("td", {}, text)));
  });
  byId("rate-limits-rows").replaceChildren(...rows);
}

/** A row per tenant, where callers are told apart. @param {Tick} tick */
export function showTenants({ tenants }) {
  byId("tenants").hidden = tenants === undefined;
  if (tenants === undefined) return;
  const { busiest, others } = tenants;
  const sum = (/** @type {typeof others} */ { items }) => Object.values(items).reduce((all, one) => all + one, 0);
  const sorted = [...busiest].sort((a, b) => sum(b) - sum(a));
  const rows = [...sorted, ...(sum(others) + others.inFlight > 0 ? [others] : [])].map(({ name, inFlight, items }) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, name),
      ...[inFlight, items.ok, items.error, items.timeout, items.rejected].map((amount) =>
        element("td", {}, count(amount)),
      ),
    ),
  );
  byId("tenants-rows").replaceChildren(...rows);
}

/**
 * A row for each background batch. Rows stay while they are shown: a button that was replaced could not be pressed.
 * @param {Tick} tick @param {(path: string) => void} cancel
 */
export function showBatches({ batches = [] }, cancel) {
  byId("batches").hidden = batches.length === 0;
  const before = new Map([...byId("batches-rows").children].map((row) => [row.id, row]));
  const rows = batches.map((batch) => {
    const { id, model, status, total, done, failed, linesPerSecond, paused, cancelPath } = batch;
    const isRunning = linesPerSecond > 0 && paused === undefined;
    const figures = [
      model,
      paused ?? status.replace("_", " "),
      total === 0 ? "–" : `${count(done)} of ${count(total)} (${percent(done / total)})`,
      count(failed),
      isRunning ? number(linesPerSecond) : "–",
      isRunning ? duration((1000 * (total - done)) / linesPerSecond) : "–",
    ];
    const row = before.get(id) ?? newBatchRow(id, figures.length, () => cancel(cancelPath));
    for (const [index, text] of figures.entries())
      if (row.children[index + 1].textContent !== text) row.children[index + 1].textContent = text;
    return row;
  });
  const shown = byId("batches-rows").children;
  if (rows.length !== shown.length || rows.some((row, index) => row !== shown[index]))
    byId("batches-rows").replaceChildren(...rows);
}

function newBatchRow(/** @type {string} */ id, /** @type {number} */ figures, /** @type {() => void} */ cancel) {
  const button = element("button", { type: "button", "aria-label": `Cancel ${id}` }, "Cancel");
  button.addEventListener("click", cancel);
  const cells = Array.from({ length: figures }, () => element("td", {}));
  return element("tr", { id }, element("th", { scope: "row" }, id.slice(0, 14)), ...cells, element("td", {}, button));
}

/** Live calls and bulk ones, where both come. @param {BatcherTick} tick @param {History} history */
export function showLanes({ stats: { lanes } }, history) {
  byId("lanes").hidden = lanes === null;
  if (lanes === null) return;
  const { dispatched, refused, seconds } = history.over(60);
  const row = (/** @type {"live" | "bulk"} */ lane, /** @type {string} */ name, oldestMs = 0) => {
    const { queued, latencyMs } = lanes[lane];
    const cells = [
      count(queued),
      oldestMs === 0 ? "–" : duration(oldestMs),
      number(dispatched[lane] / seconds),
      ...[latencyMs.p50, latencyMs.p99].map((ms) => (ms === 0 ? "–" : duration(ms))),
      count(refused[lane]),
    ];
    return element("tr", {}, element("th", { scope: "row" }, name), ...cells.map((text) => element("td", {}, text)));
  };
  byId("lanes-rows").replaceChildren(row("live", "Live calls"), row("bulk", "Bulk", lanes.bulk.oldestMs));
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
    const answered = minute.ok + minute.hits;
    const size = minute.batches === 0 ? null : minute.batchedItems / minute.batches;
    return element(
      "tr",
      {},
      element("th", { scope: "row" }, name),
      ...[
        state,
        answered === 0 ? "–" : number(answered / minute.seconds),
        size === null ? "–" : `${number(size)}${maxBatchSize === null ? "" : ` of ${count(maxBatchSize)}`}`,
        count(stats.queued),
        minute.ok === 0 || stats.latencyMs.max === 0 ? "–" : duration(stats.latencyMs.p99),
        gainOf(stats).figure || "–",
      ].map((text) => element("td", {}, text)),
    );
  });
  byId("all-rows").replaceChildren(...rows);
}
