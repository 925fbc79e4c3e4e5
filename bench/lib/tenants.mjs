import { virtualClock } from "../../packages/sheaf/dist/testing/index.js";
import { simulate } from "../../packages/sheaf/dist/tuning/index.js";
import { TenantTraffic } from "../../packages/sheaf/dist/tuning/traffic/tenants.js";

const fixedMs = 10;
const perItemMs = 0.3;
const maxBatchSize = 32;
const maxQueueSize = 1000;
/** Share of the calls, from the first, that is not counted. */
const warmUp = 0.25;

/** Many tenants at 2 % of capacity each, and one that floods: `times` capacity, steady or on and off. 0: no flood. */
export function workloadOf({ victims, times, slots, bursts, durationS, seed }) {
  const capacityPerS = (1000 * slots * maxBatchSize) / (fixedMs + perItemMs * maxBatchSize);
  const ratePerS = times * capacityPerS;
  const flood = bursts ? { pattern: "burst", ratePerS, onMs: 500, offMs: 500 } : { pattern: "poisson", ratePerS };
  const tenants = [
    { name: "victims", count: victims, arrivals: { pattern: "poisson", ratePerS: 0.02 * capacityPerS } },
    ...(times > 0 ? [{ name: "flood", arrivals: flood }] : []),
  ];
  const items = Math.round((0.02 * victims + times) * capacityPerS * durationS);
  return { tenants, items, slots, seed };
}

/** A workload on the real batcher; `options` are those of `createBatcher`. */
export async function share({ tenants, items, slots, seed }, options = {}) {
  const result = await simulate({
    cost: { fixedMs, perItemMs },
    maxBatchSize,
    maxQueueSize,
    concurrency: slots,
    ...options,
    tenants,
    items,
    seed,
    warmUp,
  });
  const { latencyMs, items: ends } = result.tenants.victims;
  const refused = ends.rejected / (ends.ok + ends.rejected);
  return { p50: latencyMs.p50, p99: latencyMs.p99, refused, perS: result.throughputPerS };
}

/** The flooder in the bulk lane, by somebody who knows who it is. */
export function shareByPriority(workload) {
  const tenants = workload.tenants.map((kind) => (kind.name === "flood" ? { ...kind, priority: "bulk" } : kind));
  return share({ ...workload, tenants }, { tenantKey: "none" });
}

/**
 * The reference, without the batcher: tenants take turns item by item, a batch's worth at each free slot; a full queue drops
 * the newest item of the tenant that has most.
 */
export async function shareReference({ tenants, items, slots, seed }) {
  const clock = virtualClock();
  const traffic = new TenantTraffic(tenants, seed);
  /** The waiting items of each tenant; tenants in order of their turns. */
  const queues = new Map();
  const latencyMs = new Float64Array(items).fill(Number.NaN);
  let queued = 0;
  let free = slots;
  let called = 0;
  let answered = 0;
  let lastAtMs = 0;
  let firstAtMs;
  const drop = () => {
    let longest = [];
    for (const queue of queues.values()) if (queue.length > longest.length) longest = queue;
    longest.pop();
    queued--;
  };
  const take = () => {
    const batch = [];
    while (batch.length < maxBatchSize && queued > 0) {
      const [key, queue] = queues.entries().next().value;
      queues.delete(key);
      if (queue.length > 0) {
        batch.push(queue.shift());
        queued--;
      }
      if (queue.length > 0) queues.set(key, queue);
    }
    return batch;
  };
  const dispatch = () => {
    while (free > 0 && queued > 0) {
      const batch = take();
      free--;
      clock.after(fixedMs + perItemMs * batch.length, () => {
        free++;
        for (const { item, atMs } of batch) latencyMs[item] = clock.now() - atMs;
        answered += batch.length;
        lastAtMs = clock.now();
        dispatch();
      });
    }
  };
  const arm = (atMs) => {
    if (atMs === undefined || called === items) return;
    clock.at(atMs, () => {
      const item = called++;
      firstAtMs ??= atMs;
      const key = traffic.keyOf(item);
      if (!queues.has(key)) queues.set(key, []);
      queues.get(key).push({ item, atMs });
      if (++queued > maxQueueSize) drop();
      clock.after(0, dispatch);
      arm(traffic.next());
    });
  };
  arm(traffic.next());
  await clock.idle();
  const counted = [];
  for (let item = Math.floor(items * warmUp); item < items; item++)
    if (traffic.kindOf(item).name === "victims") counted.push(latencyMs[item]);
  const sorted = counted.filter((ms) => !Number.isNaN(ms)).sort((a, b) => a - b);
  const at = (portion) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * portion))];
  const refused = 1 - sorted.length / counted.length;
  return { p50: at(0.5), p99: at(0.99), refused, perS: (1000 * answered) / (lastAtMs - firstAtMs) };
}
