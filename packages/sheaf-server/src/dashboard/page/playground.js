import { count, duration, number, plural } from "./format.js";
import { gainOf } from "./gain.js";
import { byId, element, legendEntry } from "./panels.js";

/** @import { Shown } from "./panels.js" @import { BatcherTick } from "../ticks.ts" */

/** "Send 200" is five callers with forty items each, at once: a browser opens six connections at most. */
const callers = 5;
const itemsEach = 40;
const dotsShown = 64;
/** Bursts that are listed and marked in the chart. */
const sentKept = 8;

/**
 * @param {{
 *   shown: () => { batcher: Shown, tick: BatcherTick | undefined },
 *   headers: () => Record<string, string>,
 * }} page
 */
export function openPlayground(page) {
  const form = /** @type {HTMLFormElement} */ (byId("send"));
  const input = /** @type {HTMLTextAreaElement} */ (byId("input"));
  const buttons = /** @type {HTMLButtonElement[]} */ ([...form.querySelectorAll("button")]);
  const result = byId("result");
  let shownFor = "";
  /** How long the bursts of the same input took so far. */
  let bursts = { of: "", tookMs: /** @type {number[]} */ ([]) };
  /** Earlier bursts, the last one first. @type {{ atMs: number, words: string }[]} */
  let sent = [];
  /** The element that shows the gain of batches, at the next tick. @type {HTMLElement | undefined} */
  let gainGoesTo;

  async function send(/** @type {(value: unknown) => Promise<Node[]>} */ how) {
    const { batcher } = page.shown();
    for (const button of buttons) button.disabled = true;
    gainGoesTo = undefined;
    result.replaceChildren(element("p", { class: "hint" }, "Sending …"));
    try {
      result.replaceChildren(...(await how(readInput(input.value, batcher))));
    } catch (error) {
      result.replaceChildren(failure(error));
    }
    for (const button of buttons) button.disabled = false;
  }

  /** @param {unknown} body */
  async function post(body) {
    const { batcher } = page.shown();
    const startedAtMs = performance.now();
    const response = await fetch(new URL(batcher.playground?.path ?? "", document.baseURI), {
      method: "POST",
      headers: { "content-type": "application/json", ...page.headers() },
      body: JSON.stringify(body),
    }).catch(() => {
      throw new SendError("No answer", "The server does not answer.");
    });
    const json = await response.json().catch(() => undefined);
    if (!response.ok)
      throw new SendError(
        json?.error?.code ?? String(response.status),
        json?.error?.message ?? `Status ${response.status}.`,
      );
    return { json, tookMs: performance.now() - startedAtMs };
  }

  async function sendOne(/** @type {unknown} */ value) {
    const { json, tookMs } = await post({ input: value });
    return oneResult(json, tookMs);
  }

  async function sendMany(/** @type {unknown} */ value) {
    const startedAtMs = performance.now();
    const replies = await Promise.allSettled(
      Array.from({ length: callers }, (_, caller) =>
        post({ inputs: Array.from({ length: itemsEach }, (_, index) => varied(value, caller * itemsEach + index)) }),
      ),
    );
    const tookMs = performance.now() - startedAtMs;
    const of = `${shownFor}\n${input.value}`;
    if (bursts.of !== of) bursts = { of, tookMs: [] };
    bursts.tookMs = [...bursts.tookMs.slice(-19), tookMs];
    showSent();
    sent = [{ atMs: startedAtMs, words: sentence(inShort(replies, tookMs)) }, ...sent.slice(0, sentKept - 1)];
    gainGoesTo = element("p", { class: "hint" });
    return [...manyResults(replies, bursts.tookMs), gainGoesTo];
  }

  /** The bursts before the one whose result is shown. */
  function showSent() {
    byId("presses-title").hidden = sent.length === 0;
    byId("presses").replaceChildren(...sent.map(({ words }) => element("li", {}, words)));
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void send(sendOne);
  });
  byId("send-many").addEventListener("click", () => void send(sendMany));
  byId("fill").addEventListener("click", () => {
    input.value = randomNumbers(page.shown().batcher);
    input.focus();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });

  return {
    /** The figures know of the last burst now. */
    ticked() {
      const stats = page.shown().tick?.stats;
      if (gainGoesTo === undefined || stats === undefined) return;
      const gain = gainOf(stats);
      gainGoesTo.textContent = gain.kind === "measuring" ? "" : `${gain.headline}.`;
    },

    update() {
      const { batcher } = page.shown();
      byId("playground").hidden = batcher.playground === undefined;
      if (shownFor === batcher.name) return;
      shownFor = batcher.name;
      const kind = batcher.playground?.input.kind;
      byId("input-label").textContent = `Input for ${batcher.name}`;
      byId("input-hint").textContent = `${sentence(batcher.playground?.description ?? "")} Ctrl + Enter sends it.`;
      byId("fill").hidden = kind !== "floats";
      input.value = firstInput(batcher);
      gainGoesTo = undefined;
      result.replaceChildren();
      sent = [];
      showSent();
    },

    /** When bursts were sent to this model, on this browser's clock. */
    sentAtMs: () => sent.map(({ atMs }) => atMs),
  };
}

/** Why an input was not sent, or not answered. */
class SendError extends Error {
  constructor(/** @type {string} */ code, /** @type {string} */ message) {
    super(message);
    this.code = code;
  }
}

/** @returns {unknown} */
function readInput(/** @type {string} */ text, /** @type {Shown} */ { playground }) {
  const kind = playground?.input.kind;
  if (kind === "text") return text;
  if (kind === "json") {
    try {
      return JSON.parse(text);
    } catch {
      throw new SendError("Not JSON", "The input is not JSON; nothing was sent.");
    }
  }
  const words = text.split(/[\s,;[\]]+/).filter((word) => word !== "");
  const wrong = words.find((word) => !Number.isFinite(Number(word)));
  if (wrong !== undefined) throw new SendError("Not a number", `“${wrong}” is not a number; nothing was sent.`);
  return words.map(Number);
}

/** The model's sample, or one of its kind. */
function firstInput(/** @type {Shown} */ batcher) {
  const { input, sample } = batcher.playground ?? {};
  if (input?.kind === "text") return typeof sample === "string" ? sample : "The cat sits outside";
  if (input?.kind === "floats") return Array.isArray(sample) ? sample.join(", ") : randomNumbers(batcher);
  return JSON.stringify(sample ?? {});
}

function varied(/** @type {unknown} */ value, /** @type {number} */ index) {
  if (typeof value === "string") return `${value} ${index + 1}`;
  if (Array.isArray(value) && value.every((part) => typeof part === "number"))
    return value.map((part) => part * (1 + index / 1000));
  return value;
}

function randomNumbers(/** @type {Shown} */ { playground }) {
  const length = playground?.input.kind === "floats" ? playground.input.length : 0;
  return Array.from({ length }, () => (Math.random() * 2 - 1).toFixed(3)).join(", ");
}

/** @param {any} json @param {number} tookMs */
function oneResult(json, tookMs) {
  const size = json.batch_size;
  const alone =
    ["It came from the cache.", "It ran alone."][size] ?? `It shared a run with ${plural(size - 1, "other item")}.`;
  const dots = element("div", { class: "dots", role: "img", "aria-label": alone });
  for (let i = 0; i < Math.min(size, dotsShown); i++) dots.append(element("i", i === 0 ? { class: "own" } : {}));
  const bar = element(
    "div",
    { class: "timeline", "aria-hidden": "true" },
    element("i", { class: "wait" }),
    element("i", { class: "run" }),
    element("i", { class: "rest" }),
  );
  bar.style.setProperty("--wait", String(json.queue_ms));
  // Reading and checking the request, the way to the worker and back, writing the reply.
  const restMs = Math.max(0, json.latency_ms - json.queue_ms - json.run_ms);
  bar.style.setProperty("--rest", String(restMs));
  bar.style.setProperty("--run", String(Math.max(json.run_ms, 0.001)));
  return [
    element(
      "p",
      { class: "figure" },
      duration(json.latency_ms).split(" ")[0],
      element("small", {}, ` ${duration(json.latency_ms).split(" ")[1]} in the server`),
    ),
    bar,
    element(
      "p",
      { class: "hint legend" },
      legendEntry(`${duration(json.queue_ms)} waiting`, "--queue"),
      legendEntry(`${duration(json.run_ms)} in its run`, "--accent"),
      legendEntry(`${duration(restMs)} for the rest`, "--line"),
      element("span", {}, `${duration(tookMs)} in this browser`),
    ),
    element("p", {}, alone),
    dots,
    ...outputOf(json.output),
  ];
}

const answeredOf = (/** @type {PromiseSettledResult<{ json: any }>[]} */ replies) =>
  replies.filter((reply) => reply.status === "fulfilled");

/** A burst in a line. @param {PromiseSettledResult<{ json: any }>[]} replies @param {number} tookMs */
function inShort(replies, tookMs) {
  const clock = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const largest = Math.max(0, ...answeredOf(replies).map(({ value }) => value.json.batch_size));
  const runs = largest === 0 ? "all from the cache" : `runs of up to ${count(largest)}`;
  return `${clock}: ${duration(tookMs)}, ${runs}`;
}

/**
 * @param {PromiseSettledResult<{ json: any, tookMs: number }>[]} replies
 * @param {readonly number[]} bursts how long this burst took, and before it those of the same input
 */
function manyResults(replies, bursts) {
  const tookMs = bursts.at(-1) ?? 0;
  const outputs = replies.flatMap((reply) => (reply.status === "fulfilled" ? reply.value.json.outputs : []));
  const errors = [
    ...outputs.flatMap((output) =>
      output?.error?.message === undefined ? [] : [`${output.error.code}: ${output.error.message}`],
    ),
    ...replies.flatMap((reply) =>
      reply.status === "rejected"
        ? Array.from({ length: itemsEach }, () => `${reply.reason.code}: ${reply.reason.message}`)
        : [],
    ),
  ];
  const answered = callers * itemsEach - errors.length;
  const largest = Math.max(
    0,
    ...replies.map((reply) => (reply.status === "fulfilled" ? reply.value.json.batch_size : 0)),
  );
  const waitMs = Math.max(0, ...replies.map((reply) => (reply.status === "fulfilled" ? reply.value.json.queue_ms : 0)));
  const [value, unit] = duration(tookMs).split(" ");
  const made = [
    element("p", { class: "figure" }, value, element("small", {}, ` ${unit} for ${plural(answered, "answer")}`)),
    element(
      "p",
      {},
      `${number((answered * 1000) / tookMs)} a second: ${callers} requests of ${itemsEach} at once. ${largest === 0 ? "All came from the cache." : `The largest run held ${count(largest)}, the longest wait was ${duration(waitMs)}.`}`,
    ),
    element(
      "p",
      { class: "hint" },
      bursts.length === 1
        ? "Measured once, in this browser; the next may differ."
        : `Measured in this browser; the last ${bursts.length} took ${duration(Math.min(...bursts))} to ${duration(Math.max(...bursts))}.`,
    ),
  ];
  const kinds = [...new Set(errors)];
  if (kinds.length > 0)
    made.push(element("p", { class: "error", role: "alert" }, `${plural(errors.length, "item")} failed. ${kinds[0]}`));
  return made;
}

/** @param {any} output */
function outputOf(output) {
  if (Array.isArray(output) && output.length > 8 && output.every((value) => typeof value === "number")) {
    return [
      spark(output),
      element(
        "p",
        { class: "hint" },
        `${count(output.length)} numbers: ${output.slice(0, 4).map(number).join(", ")} …`,
      ),
    ];
  }
  const text = JSON.stringify(output, undefined, 1) ?? "null";
  return [
    element("pre", { tabindex: "0", "aria-label": "Result" }, text.length > 1200 ? `${text.slice(0, 1200)} …` : text),
  ];
}

/** A vector's shape at a glance: at most 128 bars around a middle line. */
function spark(/** @type {number[]} */ values) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const bars = Math.min(128, values.length);
  svg.setAttribute("viewBox", `0 0 ${bars} 32`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "spark");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `A vector of ${values.length} numbers`);
  const largest = Math.max(1e-9, ...values.map(Math.abs));
  for (let i = 0; i < bars; i++) {
    const value = values[Math.floor((i * values.length) / bars)] / largest;
    const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const height = Math.max(0.6, Math.abs(value) * 15);
    for (const [name, number] of Object.entries({ x: i + 0.1, width: 0.8, height, y: value > 0 ? 16 - height : 16 }))
      bar.setAttribute(name, String(number));
    svg.append(bar);
  }
  return svg;
}

function failure(/** @type {any} */ error) {
  return element("p", { class: "error", role: "alert" }, element("b", {}, error.code ?? "Error"), ` ${error.message}`);
}

const sentence = (/** @type {string} */ words) => (words === "" ? "" : `${words[0].toUpperCase()}${words.slice(1)}.`);
