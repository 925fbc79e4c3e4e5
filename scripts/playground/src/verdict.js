import { verdictOf } from "../../../packages/sheaf/dist/core/measure/verdict.js";
import { recommend } from "../../../packages/sheaf/dist/tuning/recommend.js";
import { sharersOf } from "../../../packages/sheaf-server/dist/load/simulate/what-if.js";
import { figures } from "../../../packages/sheaf-server/dist/shared/terminal.js";
import { lost } from "./presets.js";

/**
 * @import { Recommendation } from "sheaf/tuning"
 * @import { WhatIfPoint } from "../../../packages/sheaf-server/dist/load/simulate/what-if.js"
 * @import { Settings } from "./settings.js"
 * @typedef {{ aloneMs: number, togetherMs: number, slowMs: number, fastMs: number, lost: number, batchSize: number, runs: number }} Seen
 *   of one seed: an item's part of a run, and the mean latency, each one at a time and by default; the share of the calls
 *   that get no answer one at a time; the default's batches
 * @typedef {{ word: "batch" | "do not batch" | "little to gain" | "not settled", why: string, sure: string, because: string }} Verdict
 */

/** Seeds that a verdict rests on. */
export const seedsNeeded = 5;
/** Student's t for the 95 % range of a mean of so many. */
const t95 = 2.776;

/** The part of the points of one seed that the verdict needs. @returns {Seen} */
export function seenIn(/** @type {readonly WhatIfPoint[]} */ points) {
  const of = (/** @type {string} */ name) => /** @type {WhatIfPoint} */ (points.find(({ policy }) => policy === name));
  const [alone, byDefault] = [of("unbatched"), of("auto")];
  return {
    aloneMs: runMsOfItem(alone),
    togetherMs: runMsOfItem(byDefault),
    slowMs: sharersOf(alone).latencyMs.mean,
    fastMs: sharersOf(byDefault).latencyMs.mean,
    lost: lost(alone),
    batchSize: byDefault.result.meanBatchSize,
    runs: byDefault.result.runs,
  };
}

const runMsOfItem = (/** @type {WhatIfPoint} */ { result: { utilisation, durationMs, runs, meanBatchSize } }) =>
  (utilisation * durationMs) / (runs * meanBatchSize);

/**
 * Whether batching pays: the inequality of `recommend`, and a batcher's own verdict on its runs, over seeds instead of hours.
 * Batching pays where it saves run time or latency; where chance may decide otherwise it is not settled. The inequality
 * takes calls for independent and knows no queue, so a gain of the runs wins over it.
 * @param {Settings} settings
 * @param {readonly Seen[]} seeds
 * @param {number} answeredPerS results a second one at a time
 * @returns {Verdict}
 */
export function judge({ slots, size, pattern, callers, rate, fixed }, seeds, answeredPerS) {
  const isStrict = pattern === "closed" && callers === 1;
  const advice = recommend(
    { fixedMs: fixed, perItemMs: Math.max(1e-9, seeds[0].aloneMs * slots - fixed) },
    {
      ratePerS: pattern === "closed" ? answeredPerS : rate,
      slots,
      maxBatchSize: size,
      order: isStrict ? "strict" : "free",
    },
  );
  const sum = (/** @type {(seen: Seen) => number} */ of) => seeds.reduce((total, seen) => total + of(seen), 0);
  const batchSize = sum((seen) => seen.batchSize) / seeds.length;
  const count = sum(({ runs }) => runs);
  const run = gainOf(seeds.map(({ aloneMs, togetherMs }) => aloneMs / togetherMs), { batchSize, count }); // prettier-ignore
  const latency = gainOf(seeds.map(({ slowMs, fastMs }) => slowMs / Math.max(1e-9, fastMs)), { batchSize: Infinity, count }); // prettier-ignore
  const sure = `95 % ranges, from ${count.toLocaleString("en-US")} runs of ${seeds.length} seeds: latency ${latency.range}, run time ${run.range}`;
  const without = sum((seen) => seen.lost) / seeds.length;
  const times =
    (without > 0.001
      ? `One at a time, ${figures(100 * without)} % of the calls get no answer, and the others take`
      : "One at a time, a call takes") +
    ` ${figures(latency.times)}× as long on average, and ${figures(run.times)}× the run time`;
  const { reason } = advice;
  const told = (/** @type {Verdict["word"]} */ word, why = times, because = advice.because) => {
    return { word, why, sure, because };
  };
  // Whatever chance brings, there is nothing to share.
  if (isStrict || fixed === 0 || size === 1) return told("do not batch", whyNot[reason]);
  if (run.verdict === "gains" || latency.verdict === "gains") {
    if (advice.verdict === "batch") return told("batch");
    const overruled = `the runs decide; the formula, which knows neither bursts nor queues, says: ${advice.because}`;
    return told("batch", `${times}: ${whyYet[reason]}`, overruled);
  }
  if (run.verdict === "measuring" || latency.verdict === "measuring")
    return told("not settled", `${times}: the ranges reach across the limit of 1.1×`);
  return advice.verdict === "batch"
    ? told("little to gain", `${times}: few calls meet at this rate`)
    : told("do not batch", whyNot[reason]);
}

/** The verdict that gains of several seeds support. */
function gainOf(/** @type {readonly number[]} */ gains, /** @type {{ batchSize: number, count: number }} */ sample) {
  const logs = gains.map(Math.log);
  const mean = logs.reduce((total, log) => total + log, 0) / logs.length;
  const variance = logs.reduce((total, log) => total + (log - mean) ** 2, 0) / (logs.length - 1);
  const times = Math.exp(mean);
  const { verdict, low, high } = verdictOf(sample, times, t95 * Math.sqrt(variance / logs.length), "scatter");
  const [from, to] = [figures(low ?? 0), figures(high ?? 0)];
  return { verdict, times, range: from === to ? `${from}×` : `${from} to ${to}×` };
}

/** @type {Partial<Record<Recommendation["reason"], string>>} */
const whyNot = {
  "strict-order":
    "Each call comes after the answer to the one before it: there is never a second one to share a run with",
  "no-fixed-part": "A full batch takes about as long as its items one by one: there is next to nothing to share",
  "low-rate": "Calls hardly ever meet: nearly every one finds a free slot and runs at once",
};

/** Why the runs gain where the inequality of `recommend` says no. @type {Partial<Record<Recommendation["reason"], string>>} */
const whyYet = {
  "no-fixed-part": "a batch saves little time, but the queue is long",
  "low-rate": "the mean rate is low, but many calls come at once",
};
