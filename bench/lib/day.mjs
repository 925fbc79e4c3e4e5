import { seededRandom, simulateScaled } from "../../packages/sheaf/dist/internal/tuning.js";

const fixedMs = 500;
const perItemMs = 100;
const maxBatchSize = 32;
const sloMs = 4000;
/** Time between two decisions. */
const everyMs = 15_000;

/** A model whose run of n items takes 0.5 + 0.1 n s, answers due after 4 s, workers that start in 30 s. */
const model = { cost: { fixedMs, perItemMs }, timeoutMs: sloMs, maxQueueSize: 1_000_000, maxBatchSize, warmUp: 0 };

/**
 * The calls of one day, a Poisson stream of 20 a second that is 70 % lower at midnight and higher at noon, with three bursts an
 * hour: their rate rises to twice the hour's within a minute and ends after five.
 */
function dayOf({ hours, seed }) {
  const uniform = seededRandom(seed);
  const lengthMs = hours * 3_600_000;
  const startsAtMs = Array.from({ length: 3 * hours }, () => uniform() * lengthMs).sort((a, b) => a - b);
  const timesAt = (nowMs) => {
    const startAtMs = startsAtMs.find((atMs) => atMs + 300_000 >= nowMs);
    return startAtMs === undefined || startAtMs > nowMs ? 1 : 1 + Math.min(1, (nowMs - startAtMs) / 60_000);
  };
  const perMs = 20 / 1000;
  const highest = perMs * 1.7 * 2;
  const atMs = [];
  // Thinning: a Poisson stream of the highest rate, of which each call stays with the share that its moment has of it.
  for (let nowMs = 0; ;) {
    nowMs += -Math.log(1 - uniform()) / highest;
    if (nowMs >= lengthMs) return { pattern: "trace", atMs };
    const ofHour = perMs * (1 - 0.7 * Math.cos((2 * Math.PI * nowMs) / lengthMs));
    if (uniform() * highest < ofHour * timesAt(nowMs)) atMs.push(nowMs);
  }
}

/** A day with workers that come and go; the share that was answered in time, and the hours of all workers. */
export async function day(scaling, { hours, seed }) {
  const { result, workers } = await simulateScaled(
    { ...model, arrivals: dayOf({ hours, seed }), seed },
    { startUpMs: 30_000, everyMs, downAfterMs: 300_000, ...scaling },
  );
  const { items } = result;
  const inTime = items.ok / (items.ok + items.timeout + items.rejected + items.error);
  return { inTime, hours: workers.workerSeconds / 3600, changes: workers.changes };
}

/** Calls in each stretch between two decisions, in the order of time. */
export function callsOf(day) {
  const counts = [];
  for (const atMs of dayOf(day).atMs) {
    const stretch = Math.floor(atMs / everyMs);
    counts[stretch] = (counts[stretch] ?? 0) + 1;
  }
  return Array.from(counts, (count = 0) => count);
}

/** The fewest workers for these calls in a stretch, which serve `share` of the staggered ceiling. */
function workersFor(calls, share) {
  const perMs = calls / everyMs;
  for (let workers = 1; ; workers++) {
    const runMs = sloMs / (1 + 1 / workers);
    const size = Math.min(maxBatchSize, Math.floor((runMs - fixedMs) / perItemMs));
    if (size >= 1 && (share * workers * size) / (fixedMs + perItemMs * size) >= perMs) return workers;
  }
}

/** The workers of an oracle that knows the arrivals in advance, in each stretch of time. */
export function clairvoyant(counts, share) {
  const schedule = (atMs) => {
    const stretch = Math.floor((atMs + 1) / everyMs);
    return workersFor(counts[stretch] ?? 0, share);
  };
  return { by: "schedule", schedule };
}
