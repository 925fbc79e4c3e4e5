import { figures, shownMs } from "../../../packages/sheaf-server/dist/shared/terminal.js";
import { sharersOf } from "../../../packages/sheaf-server/dist/load/simulate/what-if.js";
import { defaults } from "./settings.js";

/**
 * @import { WhatIfPoint } from "../../../packages/sheaf-server/dist/load/simulate/what-if.js"
 * @import { Settings } from "./settings.js"
 * @typedef {{ unbatched: WhatIfPoint, fifo: WhatIfPoint, auto: WhatIfPoint }} Sides
 * @typedef {{ name: string, title: string, settings: Settings, holds: (settings: Settings) => boolean, tell: (sides: Sides, settings: Settings) => string }} Preset
 */

/** Stories: the settings, and a sentence about the figures that is shown wherever it `holds`. @type {readonly Preset[]} */
export const presets = [
  {
    name: "lone",
    title: "A lone caller",
    settings: { ...defaults, pattern: "closed", callers: 1 },
    holds: ({ pattern, callers }) => pattern === "closed" && callers === 1,
    tell: ({ unbatched, fifo, auto }) =>
      `One caller, who waits for each answer before the next call. Watch the window: it holds the call for a companion who never comes, ${shownMs(p50(fifo))} instead of ${shownMs(p50(unbatched))}. The default takes ${shownMs(p50(auto))}.`,
  },
  {
    name: "burst",
    title: "A burst",
    settings: { ...defaults, pattern: "burst", rate: 60 },
    holds: ({ pattern }) => pattern === "burst",
    tell: ({ unbatched, fifo, auto }) =>
      `Calls come in bursts, then nobody calls. Watch the queue one at a time: 1 call in 100 takes longer than ${shownMs(p99(unbatched))}. By default those that wait share the next run, and it is ${shownMs(p99(auto))}; the window makes it ${shownMs(p99(fifo))}.`,
  },
  {
    name: "flood",
    title: "A flood by one tenant",
    settings: { ...defaults, tenants: 20, flood: 3, rate: 400 },
    holds: ({ pattern, tenants, flood }) => tenants > 0 && flood > 0 && pattern !== "closed",
    tell: ({ unbatched, auto }, { fair, tenants }) =>
      `${tenants} tenants share the batcher, and one more floods it (grey). With fairKey ${fair ? "on" : "off"}, the ${tenants} lose ${percentOf(lost(auto))} of their calls by default, and 99 in 100 answers come within ${shownMs(p99(auto))}; one at a time they lose ${percentOf(lost(unbatched))}. Switch fairKey ${fair ? "off" : "on"} and compare.`,
  },
  {
    name: "storm",
    title: "A retry storm",
    settings: { ...defaults, pattern: "surge", rate: 70, factor: 3, patience: 1000, attempts: 4 },
    holds: ({ pattern, patience }) => pattern === "surge" && patience > 0,
    tell: ({ unbatched, auto }) =>
      `For ten seconds more calls come, and callers who give up call again. Attempts for each call: ${figures(attempts(unbatched))} one at a time, where ${percentOf(lost(unbatched))} of the calls never get an answer, and ${figures(attempts(auto))} by default, where it is ${percentOf(lost(auto))}.`,
  },
  {
    name: "lengths",
    title: "One long text among short ones",
    settings: { ...defaults, lengths: true, median: 30, spread: 20, perLength: 0.02, padded: true, rate: 80, size: 16 },
    holds: ({ lengths, padded }) => lengths && padded,
    tell: ({ fifo, auto }) =>
      `Every item costs as much as the longest of its batch. The window puts short texts beside long ones, and half of the short ones take longer than ${shownMs(light(fifo).p50)}. The default learns the cost of length and chooses who rides together: ${shownMs(light(auto).p50)}.`,
  },
];

const p50 = (/** @type {WhatIfPoint} */ point) => sharersOf(point).latencyMs.p50;
const p99 = (/** @type {WhatIfPoint} */ point) => sharersOf(point).latencyMs.p99;
const light = (/** @type {WhatIfPoint} */ { result }) => result.latencyMsByWeight?.lighter ?? result.latencyMs;
const attempts = (/** @type {WhatIfPoint} */ { result }) => result.goodput?.attemptsPerOperation ?? 1;
const percentOf = (/** @type {number} */ share) => `${figures(100 * share)} %`;

/** Share of the calls without an answer, 0…1. */
export function lost(/** @type {WhatIfPoint} */ point) {
  const { ok, timeout, rejected, error, gaveUp } = sharersOf(point).items;
  const without = timeout + rejected + error + gaveUp;
  return without / Math.max(1, without + ok);
}

/** The story that these settings tell, if one. */
export const presetOf = (/** @type {Settings} */ settings) => presets.find(({ holds }) => holds(settings));

/** The three points by policy. @returns {Sides} */
export const sidesOf = (/** @type {readonly WhatIfPoint[]} */ points) =>
  /** @type {any} */ (Object.fromEntries(points.map((point) => [point.policy, point])));
