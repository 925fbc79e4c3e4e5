import { itemsOf, pointsOf, tableOf } from "./model.js";
import { playbackOf } from "./playback.js";
import { lost, presetOf, sidesOf } from "./presets.js";
import { sharersOf } from "../../../packages/sheaf-server/dist/load/simulate/what-if.js";
import { judge, seedsNeeded, seenIn } from "./verdict.js";

/**
 * @import { Records } from "./model.js"
 * @import { Playback } from "./playback.js"
 * @import { Settings } from "./settings.js"
 * @import { Seen, Verdict } from "./verdict.js"
 * @import { SimulatedLatency } from "sheaf/internal/tuning"
 * @typedef {{ latencyMs: SimulatedLatency, lost: number, batch: number, answeredPerS: readonly number[] | undefined }} Side
 * @typedef {{
 *   rows: string[][], sides: Side[], playbacks: Playback[], latenciesMs: Float32Array[],
 *   begunPerS: readonly number[] | undefined, story: string | undefined, settings: Settings,
 * }} Shown
 */

/**
 * Everything that the page shows of these settings; `tell` gets the figures first, then a verdict when enough seeds have run.
 * @param {Settings} settings
 * @param {(message: { shown: Shown } | { verdict: Verdict } | { seeds: number }) => void} tell
 * @param {() => boolean} isStale
 */
export async function compute(settings, tell, isStale) {
  /** @type {Records[]} */
  const records = [];
  const points = await pointsOf(settings, { records, isStale });
  if (isStale()) return;
  const from = Math.floor(0.1 * itemsOf(settings));
  const sides = sidesOf(points);
  const rows = tableOf(points);
  tell({
    shown: {
      rows,
      sides: points.map((point) => ({
        latencyMs: sharersOf(point).latencyMs,
        lost: lost(point),
        batch: point.result.meanBatchSize,
        answeredPerS: point.result.goodput?.answeredPerS,
      })),
      playbacks: records.map((seen) => playbackOf(seen, settings, from)),
      latenciesMs: records.map(({ calls }) =>
        Float32Array.from(
          calls.filter(({ end, item, tenant }) => end === "ok" && item >= from && tenant !== "flood"),
          ({ atMs, endedAtMs }) => endedAtMs - atMs,
        ),
      ),
      begunPerS: points[0].result.goodput?.begunPerS,
      settings,
      story: presetOf(settings)?.tell(sides, settings),
    },
  });
  /** @type {Seen[]} */
  const seen = [seenIn(points)];
  while (seen.length < seedsNeeded) {
    tell({ seeds: seen.length });
    const another = { ...settings, seed: settings.seed + seen.length };
    const more = await pointsOf(another, { names: ["unbatched", "auto"], isStale });
    if (isStale()) return;
    seen.push(seenIn(more));
  }
  tell({ verdict: judge(settings, seen, points[0].result.throughputPerS) });
}
