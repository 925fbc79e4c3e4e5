/**
 * @import { Records } from "./model.js"
 * @import { Settings } from "./settings.js"
 * @typedef {{
 *   atMs: number, startMs: number, endMs: number, end: string, weight: number, isFlood: boolean, run: number,
 * }} Ride one call: `startMs` is Infinity where it never ran; `run` is -1 then
 * @typedef {{ atMs: number, runMs: number, slot: number, rides: number[] }} Trip
 * @typedef {{ fromMs: number, rides: Ride[], trips: Trip[] }} Playback
 */

/** Calls of one lane that are played back at most. */
const mostRides = 2500;
/** A surge begins at second 4. */
const inSurgeMs = 4600;

/**
 * The part of a run that is played back: after the warm-up, or from the first second of a surge.
 * @param {Records} records
 * @param {Settings} settings
 * @param {number} from the first item after the warm-up
 * @returns {Playback}
 */
export function playbackOf({ calls, runs }, { pattern, slots }, from) {
  const sorted = calls.toSorted((a, b) => a.atMs - b.atMs);
  const first = sorted.find(({ item }) => item >= from) ?? sorted[0];
  const isSurge = pattern === "surge" && sorted[sorted.length - 1].atMs > 2 * inSurgeMs;
  const fromMs = isSurge ? inSurgeMs : first.atMs;
  const shown = sorted.filter(({ endedAtMs }) => endedAtMs >= fromMs).slice(0, mostRides);
  const untilMs = shown.at(-1)?.atMs ?? fromMs;
  /** @type {Ride[]} */
  const rides = shown.map(({ atMs, endedAtMs, end, weight, tenant }) => ({
    atMs,
    startMs: Infinity,
    endMs: endedAtMs,
    end,
    weight,
    isFlood: tenant === "flood",
    run: -1,
  }));
  // A client that tries again makes several calls with one item: a run took the one that was open then.
  /** @type {Map<number, number[]>} */
  const ridesOf = new Map();
  shown.forEach(({ item }, ride) => ridesOf.set(item, [...(ridesOf.get(item) ?? []), ride]));
  /** @type {Trip[]} */
  const trips = [];
  const freeAtMs = Array.from({ length: slots }, () => 0);
  for (const { items, atMs, runMs } of runs) {
    const slot = Math.max(
      0,
      freeAtMs.findIndex((free) => free <= atMs + 1e-9),
    );
    freeAtMs[slot] = atMs + runMs;
    if (atMs + runMs < fromMs) continue;
    const taken = items.flatMap((item) =>
      (ridesOf.get(item) ?? []).filter((ride) => rides[ride].atMs <= atMs && rides[ride].endMs >= atMs).slice(-1),
    );
    if (taken.length === 0 && atMs > untilMs) continue;
    for (const ride of taken) {
      rides[ride].startMs = atMs;
      rides[ride].run = trips.length;
    }
    trips.push({ atMs, runMs, slot, rides: taken });
  }
  return { fromMs, rides, trips };
}
