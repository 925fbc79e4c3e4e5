import { duration, number, plural, times } from "./format.js";

/**
 * What `stats()` says of what batches gain.
 * @typedef {object} Figures
 * @property {{ verdict: "measuring" | "gains" | "gains-nothing", batchSize: number, speedup: number | null, low: number | null, high: number | null, runs: number } | undefined} verdict
 * @property {{ fixedMs: number, perItemMs: number, basis: "runs" | "warm-up" } | null} costModel
 */

/**
 * What batches gain, in words, as far as the runs support it; until they do it is `measuring`.
 * @param {object} stats
 * @returns {{ kind: "measuring" | "gains" | "nothing", sentence: string, basis: string, figure: string, range: string }}
 *   `sentence` says it without a full stop; `figure` and `range` are empty while it is measured.
 */
export function gainOf(stats) {
  const { verdict, costModel } = /** @type {Figures} */ (stats);
  const { verdict: kind, batchSize, speedup, low, high, runs } = verdict ?? nothingYet;
  if (kind === "measuring" || costModel === null || speedup === null || low === null || high === null)
    return { kind: "measuring", sentence: "What that gains is being measured", basis: waitsFor(runs, costModel), figure: "", range: "" }; // prettier-ignore
  const { fixedMs, perItemMs } = costModel;
  const range = `${times(low)} to ${times(high)}`;
  const togetherMs = fixedMs + perItemMs * batchSize;
  const shared = {
    basis: `${times(speedup)} the work per run time (95 % range ${range}, from ${plural(runs, "run")}): a run takes ${duration(fixedMs)} and ${duration(perItemMs)} for each item.`,
    figure: times(speedup),
    range,
  };
  if (kind === "gains-nothing")
    return { kind: "nothing", sentence: `${number(batchSize)} items in one run take as long as one by one`, ...shared };
  const sentence = `${number(batchSize)} items in one run take ${duration(togetherMs)} instead of ${duration(speedup * togetherMs)} one by one`;
  return { kind: "gains", sentence, ...shared };
}

const nothingYet = { verdict: "measuring", batchSize: 0, speedup: null, low: null, high: null, runs: 0 };

/** @param {number} runs @param {Figures["costModel"]} costModel */
function waitsFor(runs, costModel) {
  if (costModel !== null && costModel.basis === "warm-up")
    return `So far there is the warm-up input alone, not yours: ${duration(costModel.fixedMs)} a run and ${duration(costModel.perItemMs)} an item.`;
  return `It takes runs of several sizes; ${runs === 0 ? "none counts yet" : `${plural(runs, "run")} so far do not settle it`}.`;
}
