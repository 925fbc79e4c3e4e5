/**
 * Traffic whose items differ in length, and an oracle for it. Lengths are lognormal: median 40 tokens, p99 2,000, at most
 * 8,192. A run takes F + a · tokens ("summed") or F + a · longest · n ("padded"). An item has three or ten times its own
 * lone run to be answered in.
 */
import { seededRandom } from "../../packages/sheaf/dist/internal/tuning.js";
import { Random } from "../../packages/sheaf/dist/tuning/traffic/random.js";
import { weightsOf } from "../../packages/sheaf/dist/tuning/traffic/weights.js";

const lengths = { pattern: "lognormal", median: 40, p99: 2000, max: 8192 };
const maxBatchSize = 32;

export const runMsOf = ({ fixedMs, perTokenMs, padded }, sum, longest, size) =>
  fixedMs + perTokenMs * (padded ? longest * size : sum);

/** Items a millisecond that first-in-first-out batches of the best single size serve. */
function capacityPerMs(workload) {
  let most = 0;
  for (let size = 1; size <= maxBatchSize; size = size < 8 ? size + 1 : size + 4) {
    const next = weightsOf(lengths, 7);
    let totalMs = 0;
    const batches = 2000;
    for (let batch = 0; batch < batches; batch++) {
      const tokens = Array.from({ length: size }, next);
      totalMs += runMsOf(
        workload,
        tokens.reduce((sum, each) => sum + each, 0),
        Math.max(...tokens),
        size,
      );
    }
    most = Math.max(most, (workload.slots * size * batches) / totalMs);
  }
  return most;
}

const withRate = (workload) => ({
  ...workload,
  maxBatchSize,
  name: `${workload.padded ? "padded" : "summed"} x ${workload.slots}, ${workload.utilisation}, ${workload.times} times`,
  perMs: workload.utilisation * capacityPerMs(workload),
});

/** Twelve by name, and four with four slots drawn at random. */
export function lengthWorkloads(seed) {
  const random = seededRandom(seed);
  const workloads = [];
  for (const padded of [false, true])
    for (const utilisation of [0.5, 0.8, 0.95])
      for (const times of [3, 10])
        workloads.push({ fixedMs: 10, perTokenMs: 0.02, slots: 1, padded, utilisation, times });
  for (const padded of [false, true])
    for (const times of [3, 10])
      workloads.push({
        fixedMs: 5 * 8 ** random(),
        perTokenMs: 0.005 * 8 ** random(),
        slots: 4,
        padded,
        utilisation: [0.5, 0.8, 0.95][Math.floor(3 * random())],
        times,
      });
  return workloads.map(withRate);
}

/** Calls in order of arrival. */
export function trafficOf(workload, items, seed) {
  const random = new Random(seed);
  const next = weightsOf(lengths, seed ^ 0x5bd1e995);
  let atMs = 0;
  return Array.from({ length: items }, (_, index) => {
    atMs += random.exponential(1 / workload.perMs);
    const tokens = next();
    const loneMs = workload.fixedMs + workload.perTokenMs * tokens;
    return { index, atMs, tokens, loneMs, timeoutMs: workload.times * loneMs };
  });
}

/** From the latency of each call (NaN: no result), without the first tenth. */
export function figuresOf(calls, latenciesMs) {
  const from = Math.floor(calls.length / 10);
  const counted = calls.slice(from);
  const answered = counted.filter(({ index }) => !Number.isNaN(latenciesMs[index]));
  // Two floats that should be equal may differ by rounding.
  const inTime = answered.filter(({ index, timeoutMs }) => latenciesMs[index] <= timeoutMs * (1 + 1e-9)).length;
  const p99 = (of) => {
    const sorted = answered
      .filter(of)
      .map(({ index }) => latenciesMs[index])
      .sort((a, b) => a - b);
    return sorted.length === 0 ? Number.NaN : sorted[Math.min(sorted.length - 1, Math.floor(0.99 * sorted.length))];
  };
  return {
    inTime: inTime / counted.length,
    shorterMs: p99(({ tokens }) => tokens <= lengths.median),
    longerMs: p99(({ tokens }) => tokens > lengths.median),
  };
}

const orders = {
  deadline: (a, b) => a.atMs + a.timeoutMs - b.atMs - b.timeoutMs,
  shortest: (a, b) => a.tokens - b.tokens || a.atMs - b.atMs,
  arrival: () => 0,
};
const budgets = [1.2, 1.5, 2, 3, 4, 6, 10, 20, Infinity];
/** 54: an order, the longest batch in lone runs of nothing, and whether to drop what cannot make it. */
const rules = Object.keys(orders).flatMap((order) =>
  budgets.flatMap((budget) => [false, true].map((drops) => ({ order, budget, drops }))),
);

/** The best rule of the oracle on this seed; without deadlines, of those that drop nothing. */
export function bestRule(workload, items, seed, told) {
  const calls = trafficOf(workload, items, seed);
  let best;
  for (const rule of rules) {
    if (rule.drops && !told) continue;
    const { inTime } = figuresOf(calls, oracleLatencies(workload, calls, rule));
    if (best === undefined || inTime > best.inTime) best = { rule, inTime };
  }
  return best.rule;
}

/** Latencies of calls under one rule, which knows what every item costs. */
export function oracleLatencies(workload, calls, rule) {
  const latenciesMs = new Float64Array(calls.length).fill(Number.NaN);
  let queue = [];
  let nowMs = 0;
  let next = 0;
  let endsMs = [];
  while (next < calls.length || queue.length > 0) {
    while (next < calls.length && calls[next].atMs <= nowMs) queue.push(calls[next++]);
    while (endsMs.length < workload.slots && queue.length > 0) {
      if (rule.drops) queue = queue.filter((call) => nowMs + call.loneMs <= call.atMs + call.timeoutMs);
      const { batch, runMs } = batchOf(workload, queue, rule, nowMs);
      if (batch.size === 0) break;
      queue = queue.filter((call) => !batch.has(call));
      endsMs.push(nowMs + runMs);
      for (const call of batch) latenciesMs[call.index] = nowMs + runMs - call.atMs;
    }
    const events = next < calls.length ? [...endsMs, calls[next].atMs] : endsMs;
    if (events.length === 0) break;
    nowMs = Math.min(...events);
    endsMs = endsMs.filter((endMs) => endMs > nowMs);
  }
  return latenciesMs;
}

function batchOf(workload, queue, { order, budget, drops }, nowMs) {
  const batch = new Set();
  let sum = 0;
  let longest = 0;
  let runMs = 0;
  let firstDeadlineMs = Infinity;
  for (const call of order === "arrival" ? queue : queue.toSorted(orders[order])) {
    if (batch.size === maxBatchSize) break;
    const withIt = runMsOf(workload, sum + call.tokens, Math.max(longest, call.tokens), batch.size + 1);
    if (batch.size > 0 && withIt > budget * workload.fixedMs) continue;
    const deadlineMs = Math.min(firstDeadlineMs, call.atMs + call.timeoutMs);
    if (batch.size > 0 && drops && nowMs + withIt > deadlineMs) continue;
    batch.add(call);
    sum += call.tokens;
    longest = Math.max(longest, call.tokens);
    runMs = withIt;
    firstDeadlineMs = deadlineMs;
  }
  return { batch, runMs };
}
