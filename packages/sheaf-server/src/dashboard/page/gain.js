import { duration, number, plural, times } from "./format.js";

/** @import { BatcherStats } from "sheaf" */

/**
 * The gain of batches, in words, as far as the runs support it; until they do it is `measuring`.
 * @param {Pick<BatcherStats, "verdict" | "costModel">} stats
 * @returns {{ kind: "measuring" | "gains" | "nothing", sentence: string, basis: string, figure: string, range: string }}
 *   `sentence` says it without a full stop; `figure` and `range` are empty while it is measured.
 */
export function gainOf({ verdict: { verdict: kind, batchSize, speedup, low, high, runs }, costModel }) {
  if (kind === "measuring" || costModel === null || speedup === null || low === null || high === null)
    return { kind: "measuring", sentence: "The gain is being measured", basis: waitsFor(runs), figure: "", range: "" }; // prettier-ignore
  const { fixedMs, perItemMs } = costModel;
  const range = `${times(low)} to ${times(high)}`;
  const togetherMs = fixedMs + perItemMs * batchSize;
  const shared = {
    basis: `Over the last ${plural(runs, "run")} that is ${times(speedup)} the work per run time (95 % range ${range}). A run takes ${span(costModel.fixedMsRange)}, and ${span(costModel.perItemMsRange)} more for each item.`,
    figure: times(speedup),
    range: `${range}, ${plural(runs, "run")}`,
  };
  if (kind === "gains-nothing")
    return {
      kind: "nothing",
      sentence: `${number(batchSize)} items in one run take hardly less than one by one`,
      ...shared,
    };
  const about = high > 1.5 * low ? "about " : "";
  const sentence = `${number(batchSize)} items in one run take ${about}${duration(togetherMs)} instead of ${about}${duration(speedup * togetherMs)} one by one`;
  return { kind: "gains", sentence, ...shared };
}

const span = (/** @type {readonly [number, number]} */ [low, high]) =>
  `${low < 0.005 ? "0" : duration(low)} to ${duration(high)}`;

const waitsFor = (/** @type {number} */ runs) =>
  runs === 0
    ? "It takes runs of several sizes; the first 16, and the first of each size, do not count."
    : `The ${plural(runs, "run")} so far that ${runs === 1 ? "counts does" : "count do"} not settle it: there are too few, their times differ too much, or their sizes too little.`;
