import { seededRandom } from "../../packages/sheaf/dist/internal/tuning.js";

/**
 * Workloads for the scheduling comparison: cost × arrivals × load. A workload is what `simulate` takes, with a name.
 * `tuned` are of the kinds that auto was developed on; nothing was ever adjusted to `heldOut`: other costs, other
 * shapes, other sizes of burst, clump and crowd, other batch sizes.
 */
const line = (fixedMs, perItemMs) => (size) => fixedMs + perItemMs * size;

const profiles = {
  gpu: { cost: line(10, 0.3), slots: 1 },
  cpu: { cost: line(0.3, 0.15), slots: 1 },
  api: { cost: line(40, 0.5), slots: 8 },
  db: { cost: line(3, 0.02), slots: 4 },
  pure: { cost: line(0, 1), slots: 1 },
  "2 gpus": { cost: line(10, 0.3), slots: 2 },
};

const heldOutProfiles = {
  "encoder (22, 1.4)": { cost: line(22, 1.4), slots: 1, maxBatchSize: 16 },
  "vectors (1.2, 0.008) x 3": { cost: line(1.2, 0.008), slots: 3, maxBatchSize: 128 },
  "remote (90, 2) x 5": { cost: line(90, 2), slots: 5 },
  "super-linear 4 + 0.1 n + 0.05 n²": { cost: (n) => 4 + 0.1 * n + 0.05 * n * n, slots: 1, shape: true },
  "stairs of 8": { cost: (n) => 6 * Math.ceil(n / 8), slots: 1, shape: true },
  "stairs of 16 x 2": { cost: (n) => 2 + 9 * Math.ceil(n / 16), slots: 2, shape: true },
  "square root": { cost: (n) => 3 * Math.sqrt(n), slots: 1, shape: true },
};

function workload(profileName, { cost, slots, maxBatchSize = 32, shape = false }, kind, load, arrivals) {
  const of = load === undefined ? "" : ` at ${load}`;
  return {
    name: `${profileName} · ${kind}${of}`,
    profile: profileName,
    kind,
    load,
    shape,
    cost,
    slots,
    maxBatchSize,
    arrivals,
  };
}

/** Most items per second, at the size that serves most: with a super-linear cost that is not the largest. */
export function capacityPerS({ cost, slots, maxBatchSize = 32 }) {
  let most = 0;
  for (let size = 1; size <= maxBatchSize; size++) most = Math.max(most, (1000 * slots * size) / cost(size));
  return most;
}

function everyWorkload(group, loads, patternsOf, loops) {
  const workloads = [];
  for (const [name, profile] of Object.entries(group)) {
    const capacity = capacityPerS(profile);
    const scaleMs = profile.cost(8);
    for (const load of loads)
      for (const [kind, arrivals] of Object.entries(patternsOf(load * capacity, scaleMs, load))) {
        workloads.push(workload(name, profile, kind, load, arrivals));
      }
    for (const [clients, think] of loops) {
      const arrivals = { pattern: "closed", clients, thinkMs: think * profile.cost(1) };
      workloads.push(workload(name, profile, `closed loop of ${clients}`, undefined, arrivals));
    }
  }
  return workloads;
}

export const tuned = everyWorkload(
  profiles,
  [0.2, 0.5, 0.8],
  (ratePerS, scaleMs, load) => ({
    poisson: { pattern: "poisson", ratePerS },
    clump: { pattern: "clump", ratePerS, size: 16, spreadMs: 0.02 * scaleMs + 0.05 },
    ...(load < 0.25 && { burst: { pattern: "burst", ratePerS, onMs: 20 * scaleMs, offMs: 60 * scaleMs } }),
  }),
  [
    [4, 0.02],
    [32, 0.1],
  ],
);

export const heldOut = everyWorkload(
  heldOutProfiles,
  [0.15, 0.4, 0.7],
  (ratePerS, scaleMs, load) => ({
    poisson: { pattern: "poisson", ratePerS },
    ...(load > 0.2 && { clump: { pattern: "clump", ratePerS, size: 6, spreadMs: 0.05 * scaleMs } }),
    ...(load < 0.5 && { burst: { pattern: "burst", ratePerS, onMs: 45 * scaleMs, offMs: 50 * scaleMs } }),
    ...(load === 0.4 && { periodic: { pattern: "periodic", ratePerS } }),
  }),
  [
    [7, 0.05],
    [24, 0.3],
  ],
);

/**
 * `count` workloads drawn at random: fixed cost 0.3 … 100 ms, 1.5 … 150 items' worth of it, 1 … 12 slots, batches of
 * 8 … 128, five shapes of cost, loads 0.1 … 0.9, five kinds of arrivals. A seed not used before is a test unseen.
 */
export function randomWorkloads(seed, count) {
  const random = seededRandom(seed);
  const pick = (choices) => choices[Math.floor(random() * choices.length)];
  const between = (low, high) => low * (high / low) ** random();
  return Array.from({ length: count }, () => {
    const fixedMs = between(0.3, 100);
    const perItemMs = fixedMs / between(1.5, 150);
    const slots = pick([1, 1, 1, 2, 2, 3, 4, 6, 8, 12]);
    const maxBatchSize = pick([8, 16, 32, 32, 64, 128]);
    const shape = pick(["line", "line", "line", "line", "line", "super-linear", "stairs", "square root", "pure"]);
    const cost = {
      line: line(fixedMs, perItemMs),
      "super-linear": (n) => fixedMs + perItemMs * n + (perItemMs * n * n) / maxBatchSize,
      stairs: (n) => fixedMs + perItemMs * 8 * Math.ceil(n / 8),
      "square root": (n) => fixedMs * Math.sqrt(n),
      pure: line(0, perItemMs),
    }[shape];
    const profile = { cost, slots, maxBatchSize, shape: shape !== "line" };
    const load = 0.1 + 0.8 * random();
    const kind = pick(["poisson", "poisson", "clump", "burst", "periodic", "closed"]);
    const ratePerS = load * capacityPerS(profile);
    const scaleMs = cost(8);
    const clients = pick([2, 3, 5, 8, 12, 20, 40, 64]);
    const arrivals = {
      poisson: { pattern: "poisson", ratePerS },
      periodic: { pattern: "periodic", ratePerS },
      clump: { pattern: "clump", ratePerS, size: pick([3, 8, 20]), spreadMs: scaleMs * between(0.01, 0.1) },
      // Twice the rate while it lasts: more would be overload, which says nothing about a policy.
      burst: {
        pattern: "burst",
        ratePerS: Math.min(load, 0.4) * capacityPerS(profile),
        onMs: scaleMs * between(10, 60),
        offMs: scaleMs * between(10, 60),
      },
      closed: { pattern: "closed", clients, thinkMs: cost(1) * between(0.01, 0.5) },
    }[kind];
    const of = `(${fixedMs.toPrecision(3)}, ${perItemMs.toPrecision(3)}) x ${slots}, at most ${maxBatchSize}`;
    const isLoop = kind === "closed";
    const named = isLoop ? `closed loop of ${clients}` : kind;
    const own = workload(`${shape} ${of}`, profile, named, isLoop ? undefined : Number(load.toFixed(2)), arrivals);
    return { ...own, profile: shape };
  });
}

/** Hand-tuned policies for the grid search: the best of them, per workload, is the oracle. */
export function grid({ cost, slots }) {
  const greedyOf = (name, size) => ({ name, decide: ({ waiting }) => ({ run: Math.min(size, waiting) }) });
  const configurations = [() => greedyOf("greedy", Infinity)];
  for (const size of [1, 2, 4, 8, 16]) configurations.push(() => greedyOf(`at most ${size}`, size));
  for (const least of [2, 4, 6, 8, 12, 16, 24, 32])
    for (const share of [0.03, 0.1, 0.25, 0.6]) {
      const holdMs = share * cost(1);
      configurations.push(() => ({
        name: `${least} or ${holdMs.toFixed(2)} ms`,
        decide: ({ nowMs, waiting, oldestAtMs, maxBatchSize }) =>
          waiting >= Math.min(least, maxBatchSize) || nowMs >= oldestAtMs + holdMs
            ? { run: waiting }
            : { askAgainAtMs: oldestAtMs + holdMs },
      }));
    }
  if (slots > 1)
    for (const least of [2, 6]) {
      configurations.push(() => ({
        name: `split, at least ${least}`,
        decide: ({ waiting, freeSlots }) => ({ run: Math.max(least, Math.ceil(waiting / freeSlots)) }),
      }));
    }
  return configurations;
}
