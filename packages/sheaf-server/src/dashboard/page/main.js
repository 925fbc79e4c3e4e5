import { barChart, timeChart } from "./charts.js";
import { count, duration, number, plural, tickDuration } from "./format.js";
import { barOf, History, shownS, sizeBounds } from "./history.js";
import {
  byId,
  element,
  showAdvice,
  showAll,
  showBatches,
  showLanes,
  showRateLimits,
  showLimits,
  showReasons,
  showRecent,
  showTenants,
  showTiles,
  showWorkers,
} from "./panels.js";
import { openPlayground } from "./playground.js";
import { openStream } from "./stream.js";
import { verdictOf } from "./verdict.js";

/** @import { Hello, Tick } from "../ticks.ts" */

const keyName = "sheaf-api-key";

/** @type {Hello | undefined} */
let hello;
/** @type {Tick | undefined} */
let tick;
/** @type {History[]} */
let histories = [];
/** @type {{ atMs: number, items: number }[]} */
let keptOut = [];
let selected = 0;
/** When the last figures came, on this browser's clock. */
let shownAtMs = 0;

const charts = {
  throughput: timeChart("throughput", {
    // A burst is a second's work, not a slope up to it and down again.
    series: [
      { label: "answered", colour: "--accent", fill: "--accent", bars: true },
      { label: "failed or refused", colour: "--bad", fill: "--bad", none: "0", bars: true },
    ],
    format: number,
    smallestMax: 1,
  }),
  latency: timeChart("latency", {
    series: [
      { label: "p99", colour: "--p99", width: 1 },
      { label: "p95", colour: "--p95", width: 1 },
      { label: "p50", colour: "--p50", width: 2 },
    ],
    bands: [
      { between: [1, 2], fill: "--fan-outer" },
      { between: [2, 3], fill: "--fan-inner" },
    ],
    format: duration,
    tick: tickDuration,
    smallestMax: 1,
  }),
  queue: timeChart("queue", {
    series: [
      { label: "waiting", colour: "--queue", fill: "--queue", bars: true },
      { label: "runs at work", colour: "--muted", width: 1.5 },
    ],
    format: number,
    smallestMax: 4,
  }),
  sizes: barChart("sizes", "--accent"),
};

const key = () => sessionStorage.getItem(keyName) ?? undefined;
/** @returns {Record<string, string>} */
const ofKey = () => (key() === undefined ? {} : { authorization: `Bearer ${key()}` });
const playground = openPlayground({
  shown: () => ({ batcher: /** @type {Hello} */ (hello).batchers[selected], tick: tick?.batchers[selected] }),
  headers: ofKey,
});

const stream = openStream(new URL("events", import.meta.url), {
  key,
  event: (name, data) => {
    if (name === "hello") greet(data);
    else if (name === "tick") take(data);
  },
  lost: (why, retryInMs) =>
    stale(
      `${why} The figures stand still; trying again ${retryInMs < 1000 ? "at once" : `in ${Math.round(retryInMs / 1000)} s`}.`,
    ),
  evicted: (most) => stale(`At most ${most} pages may be open, and a newer one replaced this page.`),
  refused: (why) => {
    setStatus("locked", "Key needed");
    byId("key").hidden = false;
    byId("main").hidden = true;
    byId("forget").hidden = true;
    byId("notice").hidden = true;
    byId("key-error").textContent = why;
    sessionStorage.removeItem(keyName);
    byId("key-input").focus();
  },
});

byId("retry").addEventListener("click", () => stream.retry());
byId("key").addEventListener("submit", (event) => {
  event.preventDefault();
  const input = /** @type {HTMLInputElement} */ (byId("key-input"));
  sessionStorage.setItem(keyName, input.value);
  input.value = "";
  stream.retry();
});
byId("forget").addEventListener("click", () => {
  sessionStorage.removeItem(keyName);
  stream.retry();
});

/** The first event of a connection: the batchers, and their last two minutes. */
function greet(/** @type {Hello} */ event) {
  const isSame =
    hello?.batchers.map(({ name }) => name).join("\n") === event.batchers.map(({ name }) => name).join("\n");
  if (!isSame) selected = 0;
  hello = event;
  histories = event.batchers.map(() => new History());
  keptOut = event.history.map(({ atMs, keptOut: items }) => ({ atMs, items }));
  for (const { atMs, seconds } of event.history) seconds.forEach((second, index) => histories[index].add(atMs, second));
  byId("title").textContent = event.title;
  byId("links").replaceChildren(...event.links.map(({ label, href }) => element("a", { href }, label)));
  byId("version").textContent = event.version;
  byId("key").hidden = true;
  byId("notice").hidden = true;
  byId("forget").hidden = key() === undefined;
  byId("main").hidden = event.batchers.length === 0;
  byId("main").classList.remove("stale");
  if (!isSame) offerModels(event);
  if (event.batchers.length === 0) return setStatus("connecting", "No model yet");
  changeModel();
  if (event.last !== undefined) show(event.last);
  else setStatus("connecting", "Connected");
}

/** Of all models together: items that a bound of their tenant kept out. */
function keptOutInMinute(/** @type {number} */ atMs) {
  keptOut = keptOut.filter((point) => atMs - point.atMs < 60_000);
  return keptOut.reduce((sum, { items }) => sum + items, 0);
}

/** The parts of the page that change with the model alone. */
function changeModel() {
  playground.update();
  showLimits(/** @type {Hello} */ (hello).batchers[selected]);
}

function take(/** @type {Tick} */ event) {
  if (event.batchers.length === 0) return;
  event.batchers.forEach(({ second }, index) => histories[index].add(event.atMs, second));
  keptOut.push({ atMs: event.atMs, items: event.keptOut });
  show(event);
}

function offerModels(/** @type {Hello} */ { batchers }) {
  const choices = batchers.map(({ name }, index) => {
    const input = element("input", {
      type: "radio",
      name: "model",
      value: String(index),
      ...(index === selected ? { checked: "" } : {}),
    });
    input.addEventListener("change", () => {
      selected = index;
      changeModel();
      if (tick !== undefined) show(tick);
    });
    return element("label", {}, input, element("span", {}, name));
  });
  const models = byId("models");
  models.replaceChildren(models.children[0], ...choices);
  models.hidden = batchers.length < 2;
}

const statusWords = /** @type {Record<string, string>} */ ({
  ok: "Ready",
  warming: "Loading",
  restarting: "Restarting",
  unavailable: "No worker",
  draining: "Shutting down",
  failed: "Failed",
});

/** Says why the figures stand still, with a button to come back. */
function stale(/** @type {string} */ why) {
  setStatus("lost", "Not connected");
  byId("notice-text").textContent = why;
  byId("notice").hidden = false;
  byId("main").classList.add("stale");
}

function setStatus(/** @type {string} */ status, /** @type {string} */ words) {
  const shown = byId("status");
  if (shown.dataset.status === status) return;
  shown.dataset.status = status;
  shown.textContent = words;
}

function show(/** @type {Tick} */ event) {
  if (event !== tick) shownAtMs = performance.now();
  tick = event;
  const shown = /** @type {Hello} */ (hello).batchers[selected];
  const batcher = event.batchers[selected];
  const history = histories[selected];
  setStatus(event.status, statusWords[event.status] ?? event.status);
  document.title = `${shown.name} · ${/** @type {Hello} */ (hello).title}`;

  const { mood, title, why, method = "" } = verdictOf(shown, batcher, history);
  // A number and its unit stay together.
  byId("verdict").textContent = title.replace(/ (?=m?s\b)/g, "\u00a0");
  byId("verdict-why").textContent = why;
  byId("verdict-how").hidden = method === "";
  byId("verdict-method").textContent = method;
  /** @type {HTMLElement} */ (document.querySelector(".verdict")).dataset.mood = mood;
  showRecent(shown, history);
  showTiles(shown, batcher, history, keptOutInMinute(event.atMs));
  showReasons(history);
  const lastLoad = batcher.state === "ready" ? batcher.reason : undefined;
  showAdvice([shown.warning, lastLoad, ...batcher.stats.advice].filter((text) => text !== undefined));
  showWorkers(batcher, event);
  showLanes(batcher, history);
  showRateLimits(event);
  showTenants(event);
  showBatches(event, (path) => void fetch(new URL(path, document.baseURI), { method: "POST", headers: ofKey() }));
  showAll(/** @type {Hello} */ (hello).batchers, event, histories);
  playground.ticked();
  drawCharts(shown, batcher.second, history);
}

/** @param {import("./panels.js").Shown} shown @param {import("../batcher-second.ts").BatcherSecond} second @param {History} history */
function drawCharts(shown, second, history) {
  byId("latency-title").textContent = second.lanes === null ? "Latency" : "Latency, bulk included";
  const { error, timeout, rejected } = history.over(shownS);
  const isPerfect = error + timeout + rejected === 0;
  charts.throughput.set(
    history.columns([
      ({ items, cache }) => items.ok + (cache?.hits ?? 0),
      // A line along the bottom would look like a problem.
      ({ items }) => (isPerfect ? null : items.error + items.timeout + items.rejected),
    ]),
    `${plural(second.items.ok + (second.cache?.hits ?? 0), "item")} answered in the last second`,
    playground.sentAtMs().map((atMs) => (atMs - shownAtMs) / 1000),
  );
  charts.latency.set(
    history.columns([
      ({ latencyMs }) => latencyMs?.p99 ?? null,
      ({ latencyMs }) => latencyMs?.p95 ?? null,
      ({ latencyMs }) => latencyMs?.p50 ?? null,
    ]),
    second.latencyMs === null
      ? "No run in the last second"
      : `Last second: half of the items took at most ${duration(second.latencyMs.p50)}, 99 % at most ${duration(second.latencyMs.p99)}`,
  );
  charts.queue.set(
    history.columns([({ queued }) => queued, ({ inFlight }) => inFlight]),
    `${plural(second.queued, "item")} waiting, ${plural(second.inFlight, "run")} at work`,
  );
  const { sizes, batches, batchedItems } = history.over(120);
  const bounds = sizeBounds(shown.maxBatchSize ?? Infinity);
  const shares = bounds.map(() => 0);
  for (const [size, ofThisSize] of sizes) shares[barOf(size, bounds)] += ofThisSize / batches;
  charts.sizes.set(
    bounds.map((bound) => count(bound)),
    shares,
    batches === 0 ? "No run yet" : `Items in a run; the mean is ${number(batchedItems / batches)}`,
  );
  byId("sizes-legend").textContent =
    batches === 0
      ? "No run in the last two minutes"
      : `Share of ${plural(batches, "run")} by the items in them, last two minutes`;
}
