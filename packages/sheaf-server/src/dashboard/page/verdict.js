import { count, number, percent, plural, times } from "./format.js";
import { reasonOf } from "./reasons.js";

/** @import { BatcherTick } from "../ticks.ts" @import { History } from "./history.js" */

/**
 * What an operator should know first, in one sentence, and a second one for the details.
 * @param {string} name
 * @param {BatcherTick} tick
 * @param {History} history
 * @returns {{ mood: "good" | "calm" | "warn" | "bad", title: string, why: string }}
 */
export function verdictOf(name, tick, history) {
  const minute = history.over(60);
  const { stats, state, reason } = tick;
  if (state === "failed" || state === "closed")
    return { mood: "bad", title: `${name} is not running`, why: reason ?? `Its state is ${state}.` };
  if (state !== "ready")
    return { mood: "warn", title: `${name} is ${state}`, why: reason ?? "What comes in waits for it." };

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
      why: `${broken}${late}The log has the cause.`,
    };
  }
  if (minute.rejected > 0.01 * tried)
    return {
      mood: "bad",
      title: `Overloaded: ${percent(minute.rejected / tried)} of items were refused`,
      why: `More comes in than ${name} can do: ${count(minute.rejected)} of ${count(tried)} items found no room in the last minute. Add workers, or let callers wait.`,
    };
  if (minute.batches === 0)
    return {
      mood: "calm",
      title: "Ready, and nothing to do",
      why: "No item came in the last minute. Send one with “Try it”.",
    };

  const size = minute.batchedItems / minute.batches;
  if (size < 1.25)
    return {
      mood: "calm",
      title: "Items come one at a time, so each runs at once",
      why: "There is nothing to batch at this load; a batch forms by itself when items come faster than runs end.",
    };
  const speedup = stats.speedup ?? stats.expectedSpeedup;
  const runs = `${plural(minute.ok, "item")} in ${plural(minute.batches, "run")} in the last minute. ${mainReason(minute.reasons, minute.batches)}`;
  if (size < 2 && speedup !== null && speedup < 1.1)
    return { mood: "calm", title: `Few items come together: ${number(size)} share a run`, why: runs };
  const gain =
    speedup === null ? "" : speedup >= 1.1 ? `, ${times(speedup)} the work per run` : ", which gains nothing here";
  return {
    mood: speedup !== null && speedup < 1.1 ? "warn" : "good",
    title: `Batching ${speedup !== null && speedup < 1.1 ? "happens" : "works"}: ${number(size)} items share a run${gain}`,
    why: runs,
  };
}

function mainReason(/** @type {Record<string, number>} */ reasons, /** @type {number} */ batches) {
  const [name, most] = Object.entries(reasons).sort(([, a], [, b]) => b - a)[0] ?? ["", 0];
  const { text } = reasonOf(name);
  if (text === "") return "";
  return `${most === batches ? "Every batch" : most > batches / 2 ? "Most batches" : "The largest part of them"} left because ${text}.`;
}
