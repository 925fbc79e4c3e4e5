import { capacityPerS, simulatePolicy } from "../../../packages/sheaf-server/dist/load/simulate/what-if.js";
import { tableOf } from "../../../packages/sheaf-server/dist/load/simulate/table.js";
import { figures } from "../../../packages/sheaf-server/dist/shared/terminal.js";

/**
 * @import { Arrivals, SimulatedCall, SimulatedRun } from "sheaf/internal/tuning"
 * @import { WhatIf, WhatIfPoint } from "../../../packages/sheaf-server/dist/load/simulate/what-if.js"
 * @import { Settings } from "./settings.js"
 * @typedef {{ calls: SimulatedCall[], runs: SimulatedRun[] }} Records
 */

/** One at a time, a window, the default: by the names that the command gives them. */
export const policies = /** @type {const} */ (["unbatched", "fifo", "auto"]);
/** @typedef {typeof policies[number]} PolicyName */

const mostItems = 12_000;
/** As the command's default. */
export const maxQueueSize = 1000;

/** Calls of a run: of a surge those of 31 s, else few enough that a slider feels live. */
export function itemsOf(/** @type {Settings} */ { pattern, rate, factor, tenants, flood, patience }) {
  if (pattern === "surge") return Math.min(mostItems, Math.ceil(rate * (21 + 10 * factor)));
  if (tenants > 0 && flood > 0) return 8000;
  return pattern === "closed" || patience > 0 ? 1500 : 2000;
}

/** @returns {Arrivals} */
function arrivalsOf(/** @type {Settings} */ { pattern, rate: ratePerS, factor, callers: clients }) {
  switch (pattern) {
    case "closed":
      return { pattern, clients };
    case "surge":
      return { pattern, ratePerS, factor, atMs: 4000, forMs: 10_000 };
    case "burst":
      return { pattern, ratePerS, onMs: 100, offMs: 300 };
    default:
      return { pattern, ratePerS };
  }
}

/** @returns {Promise<WhatIf>} */
async function whatIfOf(/** @type {Settings} */ settings) {
  const { fixed: fixedMs, perItem: perItemMs, size, slots, window, seed, pattern } = settings;
  const { lengths, median, spread, perLength, padded, tenants, flood, fair, patience, attempts, obey } = settings;
  /** @type {WhatIf} */
  const whatIf = {
    cost: { fixedMs, perItemMs, ...(lengths && { perWeightMs: perLength, batchWeight: padded ? "padded" : "sum" }) },
    weights: lengths ? { pattern: "lognormal", median, p99: median * spread, max: 1_000_000 } : undefined,
    slots,
    maxBatchSize: size,
    maxWaitMs: window,
    maxQueueSize,
    targetLatencyMs: 100,
    retries:
      patience > 0
        ? { patienceMs: patience, attempts, backOff: { baseMs: 500, maxMs: 8000, jitter: 0.25 }, obeyRetryAfter: obey }
        : undefined,
    items: itemsOf(settings),
    seed,
  };
  if (tenants === 0 || pattern === "closed") return whatIf;
  const floodPerS = flood > 0 ? flood * (await capacityPerS(whatIf)) : undefined;
  return { ...whatIf, tenants: { count: tenants, floodPerS, key: fair ? "fairKey" : "none" } };
}

/**
 * The points of one run, as the command computes them.
 * @param {Settings} settings
 * @param {{ names?: readonly PolicyName[], records?: Records[], isStale?: () => boolean }} [how] `records`: gets those of each point.
 * @returns {Promise<WhatIfPoint[]>}
 */
export async function pointsOf(settings, { names = policies, records, isStale = () => false } = {}) {
  const whatIf = await whatIfOf(settings);
  const arrivals = arrivalsOf(settings);
  const { pattern, callers, rate } = settings;
  const isClosed = pattern === "closed";
  const label = isClosed ? (callers === 1 ? "1 caller" : `${callers} callers`) : `${figures(rate)}/s`;
  const points = [];
  for (const policy of names) {
    /** @type {Records} */
    const seen = { calls: [], runs: [] };
    records?.push(seen);
    const observer = records && {
      onCall: (/** @type {SimulatedCall} */ call) => seen.calls.push(call),
      onRun: (/** @type {SimulatedRun} */ run) => seen.runs.push(run),
    };
    const result = await simulatePolicy(policy, arrivals, { ...whatIf, observer });
    points.push({ policy, tenantKey: whatIf.tenants?.key, label, load: isClosed ? callers : rate, result });
    if (isStale()) break;
  }
  return points;
}

export { tableOf };
