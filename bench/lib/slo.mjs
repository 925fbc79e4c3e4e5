import { fixedWindow } from "../../packages/sheaf/dist/index.js";
import { simulate } from "../../packages/sheaf/dist/tuning/index.js";
import { seededRandom } from "../../packages/sheaf/dist/internal/tuning.js";

/** Share of the calls that must be answered in time. */
const share = 0.99;

/** A run of n items takes fixedMs + perItemMs · n; `slots` at once; answers are due after `sloMs`. */
const named = [
  [60, 0.5, 8, 200],
  [60, 0.5, 16, 200],
  [10, 0.3, 4, 60],
  [25, 2, 4, 150],
  [5, 0.1, 2, 25],
];

export const namedCases = named.map(([fixedMs, perItemMs, slots, sloMs]) =>
  withCeiling({ fixedMs, perItemMs, slots, sloMs, scatter: 0, maxBatchSize: 256 }),
);

/** `count` cases drawn at random; a seed not used before is a test unseen. */
export function drawnCases(seed, count) {
  const random = seededRandom(seed);
  const pick = (choices) => choices[Math.floor(random() * choices.length)];
  const between = (low, high) => low * (high / low) ** random();
  return Array.from({ length: count }, () => {
    const fixedMs = between(5, 100);
    const perItemMs = fixedMs / between(5, 150);
    const slots = pick([2, 2, 3, 4, 4, 6, 8, 12, 16]);
    const largest = Math.round(between(12, 200));
    const sloMs = (1 + 1 / slots) * (fixedMs + perItemMs * largest);
    return withCeiling({ fixedMs, perItemMs, slots, sloMs, scatter: pick([0, 0, 0.05]), maxBatchSize: 256 });
  });
}

/**
 * The staggered ceiling: slots that start one after the other, 1 / slots of a run apart, each with the largest batch whose first
 * item still has its result in time.
 */
function withCeiling(one) {
  const { fixedMs, perItemMs, slots, sloMs, maxBatchSize } = one;
  const largestRunMs = sloMs / (1 + 1 / slots);
  const size = Math.min(maxBatchSize, Math.floor((largestRunMs - fixedMs) / perItemMs + 1e-9));
  const ceilingPerS = (1000 * slots * size) / (fixedMs + perItemMs * size);
  const name = [fixedMs, perItemMs, slots, sloMs].map((number) => Number(number.toPrecision(3))).join(", ");
  return { ...one, size, ceilingPerS, name: one.scatter > 0 ? `${name}, ±${100 * one.scatter} %` : name };
}

/** Whether a share of 0.99 of Poisson arrivals at this rate is answered in time; `options` are those of `createBatcher`. */
export async function isInTime(one, ratePerS, options, { seed, slos }) {
  const { fixedMs, perItemMs, slots, sloMs, scatter, maxBatchSize, ceilingPerS } = one;
  const { tenants, latencyMs } = await simulate({
    tenants: [{ name: "all", arrivals: { pattern: "poisson", ratePerS } }],
    tenantKey: "none",
    cost: { fixedMs, perItemMs },
    noise: { cv: scatter },
    concurrency: slots,
    maxBatchSize,
    maxQueueSize: 1_000_000,
    items: Math.max(10_000, Math.round((slos * sloMs * ceilingPerS) / 1000)),
    seed,
    ...options,
  });
  const { ok, timeout, rejected, error } = tenants.all.items;
  return ok >= share * (ok + timeout + rejected + error) && (options.timeoutMs !== undefined || latencyMs.p99 <= sloMs);
}

/** The highest rate that is answered in time, as a share of the ceiling, by bisection to 0.004. */
export async function goodput(one, optionsOf, run) {
  let low = 0;
  let high = 1.04;
  while (high - low > 0.004) {
    const middle = (low + high) / 2;
    if (await isInTime(one, middle * one.ceilingPerS, optionsOf(one), run)) low = middle;
    else high = middle;
  }
  return low;
}

/** Triton's dynamic batcher: a free slot takes a batch of the preferred size, or all items once the oldest has waited for the delay. */
const withQueueDelay = (preferred, delayMs) => ({
  name: "queue delay",
  decide: ({ nowMs, waiting, oldestAtMs }) =>
    waiting >= preferred || nowMs >= oldestAtMs + delayMs
      ? { run: Math.max(preferred, waiting) }
      : { askAgainAtMs: oldestAtMs + delayMs },
});

/** A window of a tenth of the SLO. */
export const windowed = ({ sloMs }) => ({ policy: fixedWindow(), maxWaitMs: sloMs / 10 });

/** Triton's queue delay, with the batch size of the ceiling and the best of these shares of the SLO, found on another seed. */
export async function tunedQueueDelay(one, run) {
  const optionsOf =
    (delay) =>
    ({ size, sloMs }) => ({ policy: withQueueDelay(size, delay * sloMs) });
  let best = { goodput: -1 };
  for (const delay of [0.02, 0.05, 0.1, 0.2]) {
    const found = await goodput(one, optionsOf(delay), { ...run, seed: run.seed + 1_000_000 });
    if (found > best.goodput) best = { goodput: found, delay };
  }
  return optionsOf(best.delay);
}
