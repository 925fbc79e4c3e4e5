import { count, duration, number, percent, plural } from "./format.js";
import { gainOf } from "./gain.js";
import { reasonOf } from "./reasons.js";

/** @import { BatcherTick, Hello } from "../ticks.ts" @import { History } from "./history.js" */

/** @typedef {"good" | "calm" | "warn" | "bad"} Mood */

/**
 * The most important fact for an operator, in one sentence, and a second one for the details. About the gain it says
 * no more than the runs support.
 * @param {Pick<Hello["batchers"][number], "name" | "maxBatchSize" | "playground">} shown
 * @param {BatcherTick} tick
 * @param {History} history
 * @returns {{ mood: Mood, title: string, why: string, method?: string }} `method`: how the gain was measured.
 */
export function verdictOf({ name, maxBatchSize, playground }, tick, history) {
  const minute = history.over(60);
  const { stats, state, reason } = tick;
  if (state === "failed" || state === "closed")
    return {
      mood: "bad",
      title: `${name} is not running`,
      why: reason ?? (state === "closed" ? "It has been closed." : "The log has the cause."),
    };
  if (state !== "ready") return { mood: "warn", title: `${name} is ${state}`, why: reason ?? waitsWhile(state) };

  const tried = minute.ok + minute.error + minute.timeout + minute.rejected;
  const failed = minute.error + minute.timeout;
  if (failed > 0) {
    const codes = Object.keys(minute.failures).filter((code) => code !== "MODEL");
    const late = minute.timeout > 0 ? `${plural(minute.timeout, "item")} ran out of time. ` : "";
    const broken =
      minute.error > 0
        ? `${plural(minute.error, "item")} failed${codes.length > 0 ? ` (${codes.join(", ")})` : ""}. `
        : "";
    return {
      mood: failed > 0.01 * tried ? "bad" : "warn",
      title: `${percent(failed / tried)} of items failed in the last minute`,
      why: `${broken}${late}${minute.error > 0 ? "The log has the cause." : ""}`,
    };
  }
  // Bulk may be refused on purpose, to try again later.
  const refused = minute.rejected - minute.refused.bulk;
  if (refused > 0.01 * tried)
    return {
      mood: "bad",
      title: `Overloaded: ${percent(refused / tried)} of items were refused`,
      why: `More items arrive than ${name} can run: ${count(refused)} of ${count(tried)} items were refused in the last minute. Add workers, or let callers wait.`,
    };
  if (minute.batches === 0 && minute.hits > 0)
    return {
      mood: "good",
      title: "Every item came from the cache",
      why: `${plural(minute.hits, "item")} in the last minute, and no run.`,
    };
  if (minute.batches === 0)
    return {
      mood: "calm",
      title: "Ready, and nothing to do",
      why: `No item was run in the last minute.${playground === undefined ? "" : " Send one with “Try it”."}${gainBefore(stats)}`,
    };

  const size = minute.batchedItems / minute.batches;
  if (maxBatchSize === 1)
    return {
      mood: "calm",
      title: "Each item runs alone",
      why: `The batch size in force is 1: ${plural(minute.batches, "run")} in the last minute.`,
    };
  const runs = `${plural(minute.batchedItems, "item")} in ${plural(minute.batches, "run")} in the last minute.`;
  const { queueWaitMs, runMs } = stats;
  // A call that waits longer than a run takes has waited while a run could have taken more.
  const isWaiting = queueWaitMs.p50 > runMs.p50;
  if (size < 1.25 && !isWaiting)
    return {
      mood: "calm",
      title:
        minute.batches === 1 ? "One item arrived, and ran at once" : "Items come one at a time, so each runs at once",
      why: `${runs} A batch forms by itself when items come faster than runs end.`,
    };
  if (size < 2 && isWaiting && maxBatchSize !== 1)
    return {
      mood: "warn",
      title: `Items wait, but only ${number(size)} share a run`,
      why: `Half of them wait ${duration(queueWaitMs.p50)} or more for runs of ${duration(runMs.p50)}. Groups, weights, an order or a short queue may keep them apart.`,
    };
  const gain = gainOf(stats);
  const share = `${number(size)} items share a run`;
  const why = `${runs} ${mainReason(minute.reasons, minute.batches)}`;
  if (gain.kind === "measuring" || gain.kind === "start")
    return { mood: "calm", title: share, why: `${gain.headline}. ${why}`, method: gain.basis };
  return {
    mood: gain.kind === "gains" ? "good" : "warn",
    title: gain.headline,
    why: `${share}: ${why}`,
    method: gain.basis,
  };
}

/** What is known about the gain while nothing runs. */
function gainBefore(/** @type {BatcherTick["stats"]} */ stats) {
  const { kind, headline } = gainOf(stats);
  return kind === "measuring" ? "" : ` ${headline}.`;
}

const waitsWhile = (/** @type {string} */ state) =>
  state === "loading" ? "It takes no items yet." : "Requests wait for it.";

function mainReason(/** @type {Record<string, number>} */ reasons, /** @type {number} */ batches) {
  const [name, most] = Object.entries(reasons).sort(([, a], [, b]) => b - a)[0] ?? ["", 0];
  const { text } = reasonOf(name);
  if (text === "") return "";
  return `${most === batches ? "Every run" : most > batches / 2 ? "Most runs" : `${most} of these runs`} started because ${text}.`;
}
