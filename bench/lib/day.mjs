import { greedy } from "../../packages/sheaf/dist/index.js";
import { simulate } from "../../packages/sheaf/dist/tuning/index.js";

const fixedMs = 500;
const perItemMs = 100;
const maxBatchSize = 32;
const sloMs = 4000;
/** Time between two decisions. */
const everyMs = 15_000;

/** A model whose run of n items takes 0.5 + 0.1 n s, answers due after 4 s, workers that start in 30 s. */
const model = { cost: { fixedMs, perItemMs }, timeoutMs: sloMs, maxQueueSize: 1_000_000, maxBatchSize, warmUp: 0 };

const arrivalsOf = (hours) => ({
  pattern: "day",
  ratePerS: 20,
  lengthMs: hours * 3_600_000,
  bursts: { count: 3 * hours, factor: 2, riseMs: 60_000, forMs: 300_000 },
});

/** A day with workers that come and go; the share that was answered in time, and the hours of all workers. */
export async function day(scaling, { hours, seed }) {
  const { items, workers } = await simulate({
    ...model,
    arrivals: arrivalsOf(hours),
    seed,
    scaling: { startUpMs: 30_000, everyMs, downAfterMs: 300_000, ...scaling },
  });
  const inTime = items.ok / (items.ok + items.timeout + items.rejected + items.error);
  return { inTime, hours: workers.workerSeconds / 3600, changes: workers.changes };
}

/** Calls in each stretch between two decisions, in the order of time. */
export async function callsOf({ hours, seed }) {
  const counts = [];
  const cost = (size, atMs) => {
    const stretch = Math.floor(atMs / everyMs);
    counts[stretch] = (counts[stretch] ?? 0) + size;
    return 0;
  };
  await simulate({ cost, arrivals: arrivalsOf(hours), seed, policy: greedy(), concurrency: 1000, warmUp: 0 });
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

/** The workers of someone who knows every call: in each stretch as many as it takes, at once. */
export function clairvoyant(counts, share) {
  const schedule = (atMs) => {
    const stretch = Math.floor((atMs + 1) / everyMs);
    return workersFor(counts[stretch] ?? 0, share);
  };
  return { by: "schedule", schedule };
}
