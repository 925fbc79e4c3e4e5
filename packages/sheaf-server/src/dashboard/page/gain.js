import { duration, number, plural, times } from "./format.js";

/**
 * @import { BatcherStats } from "sheaf"
 * @typedef {NonNullable<BatcherStats["verdict"]["cause"]>} OpenCause
 * @typedef {NonNullable<BatcherStats["verdict"]["start"]>} StartGain
 */

/**
 * The gain of batches, in words, as far as the callers' runs support it. Until they do it is `measuring`, or `start` where the
 * warm-up measured one: that is no claim about what callers send.
 * @param {Pick<BatcherStats, "verdict" | "costModel">} stats
 * @returns {{ kind: "measuring" | "start" | "gains" | "nothing", headline: string, basis: string, figure: string, range: string }}
 *   `headline` is one line without a full stop, `basis` the method in sentences; `figure` and `range` are empty while it is measured.
 */
export function gainOf({ verdict, costModel }) {
  const { verdict: kind, batchSize, speedup, low, high, runs, start } = verdict;
  if (kind === "nothing-to-batch") return { kind: "nothing", headline: "Nothing to batch: items come one at a time", basis: `No item has shared a run yet.${start === null ? "" : ` ${atStart(start)}`}`, figure: "", range: "" }; // prettier-ignore
  if (kind === "measuring" || speedup === null || low === null || high === null) return withoutVerdict(verdict);
  const range = rangeOf(low, high);
  const measured = `Measured over the last ${plural(runs, "run")}, of ${number(batchSize)} items on average: one by one they would take ${times(speedup)} as long (95 % range ${range}).`;
  const cost = costModel === null || costModel.basis !== "runs" ? "" : ` ${costOf(costModel)}`;
  const shared = {
    basis: `${measured}${cost}${start === null ? "" : ` ${atStart(start)}`}`,
    figure: times(speedup),
    range: `${range}, ${plural(runs, "run")}`,
  };
  if (kind === "gains-nothing") return { kind: "nothing", headline: `Batching gains almost nothing (${briefly(low, high)})`, ...shared }; // prettier-ignore
  return { kind: "gains", headline: `Batching gains ${times(speedup)} (${briefly(low, high)})`, ...shared };
}

/**
 * @param {BatcherStats["verdict"]} verdict
 * @returns {ReturnType<typeof gainOf>}
 */
function withoutVerdict({ start, cause, runs }) {
  const open = cause === null ? "" : openBecause(cause, runs);
  if (start === null) return { kind: "measuring", headline: "The gain is being measured", basis: open, figure: "", range: "" }; // prettier-ignore
  return {
    kind: "start",
    headline: `The gain is being measured; at the start, runs of ${number(start.batchSize)} gained ${times(start.speedup)}`,
    basis: `${atStart(start)} ${open}`,
    figure: "",
    range: "",
  };
}

const atStart = (/** @type {StartGain} */ { batchSize, speedup, low, high, runs }) =>
  `Measured at the start with the sample, in ${plural(runs, "run")}: ${number(batchSize)} items one by one take ${times(speedup)} as long as in one run (95 % range ${rangeOf(low, high)}).`;

/**
 * The cost of a run in one sentence: by size, and by weight where items have weights, or a second one where weights explain nothing.
 * @param {NonNullable<BatcherStats["costModel"]>} costModel
 */
function costOf({ fixedMsRange, perItemMsRange, perWeightMs, perWeightMsRange, batchWeight }) {
  const bySize = `A run takes ${span(fixedMsRange)}, and ${span(perItemMsRange)} more for each item`;
  if (perWeightMs === undefined) return `${bySize}.`;
  if (perWeightMs === null || perWeightMsRange === undefined) return `${bySize}. The items' weights do not explain run times.`; // prettier-ignore
  const counted =
    batchWeight === "padded" ? "the heaviest item's weight, for each item" : "the items' weights together";
  const [low, high] = perWeightMsRange.map((ms) => duration(1000 * ms));
  return `${bySize} and ${low} to ${high} for each 1,000 of ${counted}.`;
}

const rangeOf = (/** @type {number} */ low, /** @type {number} */ high) => `${times(low)} to ${times(high)}`;

/** As in `1.90–2.3`. */
const briefly = (/** @type {number} */ low, /** @type {number} */ high) =>
  `${times(low)}–${times(high)}`.replaceAll("×", "");

const span = (/** @type {readonly [number, number]} */ [low, high]) =>
  `${low < 0.005 ? "0" : duration(low)} to ${duration(high)}`;

const needed = 30;

/** Why the callers' own runs give no verdict yet: the one cause. */
function openBecause(/** @type {OpenCause} */ cause, /** @type {number} */ runs) {
  switch (cause) {
    case "few-runs":
      return `No verdict on the callers' own runs yet: ${runs === 0 ? "none counts" : `${plural(runs, "run")} of ${needed} count${runs === 1 ? "s" : ""}`}; the first 16, and the first of each size, do not.`;
    case "one-size":
      return "No verdict on the callers' own runs yet: nearly all hold the same number of items, so the cost of other sizes is unknown.";
    case "scatter":
      return "No verdict on the callers' own runs yet: run times of one size vary too much, with the items or the load of the machine.";
    case "pace":
      return "No verdict on the callers' own runs yet: small runs were too rare, or ran at other times than large ones, to separate their cost from the machine's pace.";
    case "close":
      return "No verdict on the callers' own runs yet: the gain is too close to 1.1× to call.";
  }
}
