import { figures, shownMs } from "../../../packages/sheaf-server/dist/shared/terminal.js";
import { argumentsOf, codeOf } from "./command.js";
import { answerRequests, computer } from "./computer.js";
import { controlsIn } from "./controls.js";
import { byId, element } from "./elements.js";
import { names, showFigures } from "./figures.js";
import { drawFlow, drawTimeline, laneOn, paceOf } from "./flow.js";
import { itemsOf, policies } from "./model.js";
import { presetOf, presets } from "./presets.js";
import { hashOf, settingsOf } from "./settings.js";
import { seedsNeeded } from "./verdict.js";

/** @import { Shown } from "./compute.js" @import { Lane } from "./flow.js" @import { Settings } from "./settings.js" @import { Verdict } from "./verdict.js" */

if (typeof document === "undefined") answerRequests();
else start();

function start() {
  /** @type {Settings} */
  let settings;
  /** Those that are computed, or were the last to be. @type {Settings | undefined} */
  let asked;
  let isWaiting = false;
  /** @type {Shown | undefined} */
  let shown;
  /** @type {Verdict | undefined} */
  let verdict;
  /** @type {Lane[]} */
  let lanes = [];
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  let isTimeline = calm.matches;
  let isPlaying = !calm.matches;
  let elapsedMs = 0;
  let pace = 1;
  let aloneMs = 1;
  let lastFrame = 0;

  const show = controlsIn(/** @type {HTMLFormElement} */ (byId("settings")), (name, value) =>
    change({ ...settings, [name]: value }),
  );
  const laneParts = policies.map((policy) => {
    const canvas = /** @type {HTMLCanvasElement} */ (element("canvas", { class: policy, role: "img" }));
    const count = element("span", { class: "count" });
    byId("lanes").append(
      element(
        "figure",
        { class: "lane" },
        element("figcaption", {}, element("b", { class: policy }, names[policy]), count),
        canvas,
      ),
    );
    return { canvas, count };
  });

  const ask = computer((message) => {
    if (message.shown !== undefined) {
      shown = message.shown;
      verdict = undefined;
      showFigures(message.shown);
      restart();
    }
    if (message.seeds !== undefined) showMeasuring(message.seeds);
    if (message.verdict !== undefined) {
      verdict = message.verdict;
      showVerdict();
      document.body.dataset.settled = hashOf(shown?.settings ?? settings);
    }
    if (message.error !== undefined) {
      byId("word").textContent = "That cannot be simulated";
      byId("why").textContent = message.error;
      byId("verdict").dataset.word = "not settled";
    }
    if (message.shown === undefined && message.error === undefined) return;
    isWaiting = false;
    if (asked !== settings) request();
  });

  /** One at a time: figures follow a slider that moves, as fast as they can. */
  function request() {
    if (isWaiting) return;
    isWaiting = true;
    byId("verdict").dataset.word = "measuring";
    byId("word").textContent = "Measuring …";
    asked = settings;
    ask(asked);
  }

  function change(/** @type {Settings} */ next, isNew = true) {
    settings = next;
    show(settings);
    showCode();
    for (const button of byId("presets").querySelectorAll("button"))
      button.setAttribute("aria-pressed", String(button.dataset.name === presetOf(settings)?.name));
    if (isNew) history.replaceState(undefined, "", hashOf(settings) || location.pathname + location.search);
    request();
  }

  function fromAddress() {
    const read = settingsOf(location.hash);
    byId("ignored").hidden = read.ignored.length === 0;
    byId("ignored").textContent = `Left out of the address: ${read.ignored.join("; ")}.`;
    change(
      location.hash.length > 1
        ? read.settings
        : (presets.find(({ name }) => name === "burst")?.settings ?? read.settings),
      false,
    );
  }

  for (const { name, title, settings: told } of presets) {
    const button = element("button", { type: "button", "data-name": name, "aria-pressed": "false" }, title);
    button.addEventListener("click", () => change({ ...told, seed: settings.seed }));
    byId("presets").append(button);
  }

  function showCode() {
    byId("code").textContent = codeOf(settings);
    byId("command").textContent = `npx sheaf ${argumentsOf(settings).join(" ")}`;
    byId("address").textContent = location.href.replace(/#.*/, "") + hashOf(settings);
    byId("basis").textContent =
      `${itemsOf(settings).toLocaleString("en-US")} calls each way, the first tenth not counted, seed ${settings.seed}; ` +
      `the verdict rests on ${seedsNeeded} seeds. Run times are yours to say: “npx sheaf tune” measures them. ` +
      "In the table, unbatched is one at a time, fifo the window, and auto the default.";
  }

  /** On a phone the verdict stays in sight while a slider moves. */
  function showMini() {
    byId("mini").replaceChildren(
      element("b", {}, byId("word").textContent ?? ""),
      ...(shown?.sides ?? []).map(({ latencyMs }, at) =>
        element("span", {}, element("i", { class: `swatch ${policies[at]}` }), shownMs(latencyMs.p99)),
      ),
    );
  }

  function showMeasuring(/** @type {number} */ seeds) {
    byId("verdict").dataset.word = "measuring";
    byId("word").textContent = "Measuring …";
    byId("why").textContent =
      `The figures below are of seed ${shown?.settings.seed}. The verdict waits for ${seedsNeeded - seeds} more.`;
    byId("sure").textContent = byId("because").textContent = "";
    showMini();
  }

  const words = {
    batch: "Batch.",
    "do not batch": "Do not batch.",
    "little to gain": "Little to gain.",
    "not settled": "Not settled.",
  };
  function showVerdict() {
    if (verdict === undefined || shown === undefined) return;
    byId("verdict").dataset.word = verdict.word;
    byId("word").textContent = words[verdict.word];
    byId("why").textContent = `${verdict.why}.`;
    byId("sure").textContent = `${verdict.sure}.`;
    byId("because").textContent = `${verdict.because}.`;
    showMini();
    const [one, window, byDefault] = shown.sides.map(({ latencyMs }) => shownMs(latencyMs.p99));
    byId("said").textContent =
      `${words[verdict.word]} ${verdict.why}. 99 of 100 answers come within ${one} one at a time, ${window} with a window, ${byDefault} by default.`;
  }

  function restart() {
    if (shown === undefined) return;
    const { playbacks, sides, settings: of } = shown;
    lanes = playbacks.map((playback, at) =>
      laneOn(laneParts[at].canvas, playback, {
        slots: of.slots,
        size: policies[at] === "unbatched" ? 1 : of.size,
      }),
    );
    const [{ rides }] = playbacks;
    const perS = (1000 * (rides.length - 1)) / Math.max(1, rides[rides.length - 1].atMs - rides[0].atMs);
    const { fixed, perItem, lengths, median, perLength, pattern } = of;
    aloneMs = fixed + perItem + (lengths ? median * perLength : 0);
    pace = paceOf(aloneMs, perS, pattern === "surge");
    elapsedMs = 0;
    policies.forEach((policy, at) => {
      const { latencyMs, batch } = sides[at];
      laneParts[at].canvas.setAttribute(
        "aria-label",
        `${names[policy]}: ${figures(batch)} calls share a run on average, half are answered within ${shownMs(latencyMs.p50)}.`,
      );
    });
    draw(0);
  }

  function draw(/** @type {number} */ frameS) {
    if (lanes.length === 0) return;
    byId("stage").classList.toggle("is-timeline", isTimeline);
    if (isTimeline) {
      const span = 12 * aloneMs;
      lanes.forEach((lane, at) => {
        const calls = drawTimeline(lane, span);
        laneParts[at].count.textContent = `${calls} calls in ${shownMs(span)}`;
      });
      byId("pace").textContent =
        `${shownMs(span)} of virtual time, from left to right. Each call is a line: thin while it waits, thick while its run lasts.`;
      return;
    }
    lanes.forEach((lane, at) => {
      const { waiting, answered, lost } = drawFlow(lane, elapsedMs, frameS, pace);
      laneParts[at].count.textContent = `${waiting} waiting · ${answered} answered${lost > 0 ? ` · ${lost} not` : ""}`;
    });
    const slower = 1000 / pace;
    byId("pace").textContent =
      slower >= 1.5
        ? `${figures(slower)} times slower than life. From the left: calls arrive, wait, share a run, leave.`
        : "From the left: calls arrive, wait, share a run, leave.";
  }

  function frame(/** @type {number} */ atMs) {
    const frameS = Math.min(0.1, (atMs - lastFrame) / 1000);
    lastFrame = atMs;
    if (isPlaying && !isTimeline && lanes.length > 0) {
      elapsedMs += frameS * pace;
      if (elapsedMs > shortestMs(lanes)) restart();
      else draw(frameS);
    }
    requestAnimationFrame(frame);
  }

  const shortestMs = (/** @type {Lane[]} */ of) =>
    Math.min(...of.map(({ playback: { rides, fromMs } }) => (rides.at(-1)?.atMs ?? 0) - fromMs));

  function showPlaying() {
    byId("play").textContent = isPlaying ? "Pause" : "Play";
    byId("play").hidden = isTimeline;
    byId("view").setAttribute("aria-pressed", String(isTimeline));
  }
  byId("play").addEventListener("click", () => {
    isPlaying = !isPlaying;
    showPlaying();
  });
  byId("view").addEventListener("click", () => {
    isTimeline = !isTimeline;
    if (!isTimeline) isPlaying = true;
    showPlaying();
    draw(0);
  });

  const theme = byId("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.style.colorScheme || (dark.matches ? "dark" : "light")) === "dark";
  const showTheme = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    draw(0);
  };
  theme.addEventListener("click", () => {
    document.documentElement.style.colorScheme = isDark() ? "light" : "dark";
    showTheme();
  });
  dark.addEventListener("change", showTheme);

  for (const button of document.querySelectorAll("button.copy"))
    button.addEventListener("click", () => void copy(byId(/** @type {HTMLElement} */ (button).dataset.copies ?? "")));

  addEventListener("hashchange", fromAddress);
  addEventListener("resize", () => {
    if (shown !== undefined) showFigures(shown);
    draw(0);
  });
  showPlaying();
  showTheme();
  fromAddress();
  requestAnimationFrame(frame);
}

async function copy(/** @type {HTMLElement} */ from) {
  const text = from.textContent ?? "";
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A page from a file may have no clipboard: the text is selected, ready to be copied.
    getSelection()?.selectAllChildren(from);
    document.execCommand("copy");
  }
  byId("said").textContent = "Copied.";
}
