import { figures, shownMs } from "../../../packages/sheaf-server/dist/shared/terminal.js";
import { drawAnswers, drawLatencies } from "./chart.js";
import { byId, element } from "./elements.js";
import { policies } from "./model.js";

/** @import { Shown } from "./compute.js" */

/** The three ways, in words. */
export const names = { unbatched: "One at a time", fifo: "A window", auto: "The default" };

/** Shows the figures of one simulation: the table, the tiles of the verdict, the story and the charts. */
export function showFigures(/** @type {Shown} */ { rows, sides, latenciesMs, begunPerS, story, settings: of }) {
  const [head, ...body] = rows;
  byId("figures").replaceChildren(
    element("thead", {}, element("tr", {}, ...head.map((text) => element("th", { scope: "col" }, text)))),
    element(
      "tbody",
      {},
      ...body.map((row, at) =>
        element(
          "tr",
          {},
          ...row.map((text, column) =>
            column === 1
              ? element("th", { scope: "row" }, element("i", { class: `swatch ${policies[at]}` }), text)
              : element("td", {}, text),
          ),
        ),
      ),
    ),
  );
  byId("story").hidden = story === undefined;
  byId("story").textContent = story ?? "";
  byId("sides").replaceChildren(
    ...sides.map(({ latencyMs, lost }, at) =>
      element(
        "div",
        { class: policies[at] },
        element("dt", {}, policies[at] === "fifo" ? `A window of ${of.window} ms` : names[policies[at]]),
        element("dd", { class: "figure" }, shownMs(latencyMs.p99)),
        element(
          "dd",
          { class: "hint" },
          `for 99 of 100 calls; half take up to ${shownMs(latencyMs.p50)}${lost > 0 ? `; ${figures(100 * lost)} % lost` : ""}`,
        ),
      ),
    ),
  );
  const lines = sides.map(({ latencyMs, answeredPerS }, at) => ({
    name: names[policies[at]],
    kind: policies[at],
    latencyMs,
    values: latenciesMs[at],
    perS: answeredPerS ?? [],
  }));
  const svg = /** @type {SVGSVGElement} */ (/** @type {unknown} */ (byId("latencies")));
  drawLatencies(svg, lines);
  svg.setAttribute(
    "aria-label",
    `Latency. ${lines.map(({ name, latencyMs }) => `${name}: half within ${shownMs(latencyMs.p50)}, 95 of 100 within ${shownMs(latencyMs.p95)}, 99 within ${shownMs(latencyMs.p99)}`).join(". ")}.`,
  );
  byId("answers-figure").hidden = begunPerS === undefined;
  if (begunPerS === undefined) return;
  const answers = /** @type {SVGSVGElement} */ (/** @type {unknown} */ (byId("answers")));
  drawAnswers(answers, lines, begunPerS);
  answers.setAttribute(
    "aria-label",
    `Answers a second over time. ${lines.map(({ name, perS }) => `${name}: at most ${Math.max(...perS)}`).join(". ")}.`,
  );
}
