import assert from "node:assert/strict";
import { test } from "node:test";
import { auto, greedy, type Policy } from "../../dist/index.js";
import { simulate } from "../../dist/tuning/index.js";
import { inProof } from "../support/seeds.js";

// Poisson arrivals at λ per ms, one slot, s(n) = τ0 + α n. Means are arrival → result, in milliseconds.
interface Queue {
  readonly fixedMs: number;
  readonly perItemMs: number;
  readonly perMs: number;
  readonly maxBatchSize: number;
}

const simulated = async (queue: Queue, policy: Policy, items: number, seed = 1): Promise<number> => {
  const { fixedMs, perItemMs, perMs, maxBatchSize } = queue;
  const result = await simulate({
    arrivals: { pattern: "poisson", ratePerS: 1000 * perMs },
    cost: { fixedMs, perItemMs },
    policy,
    maxBatchSize,
    maxQueueSize: Infinity,
    concurrency: 1,
    items,
    seed,
  });
  assert.equal(result.items.ok, items);
  return result.latencyMs.mean;
};

/**
 * The exact mean under greedy: the number of items at the start of a run is a Markov chain, and by Little's law the mean
 * is items × time ÷ arrivals over its stationary law: Σ πn (n s + λ s² / 2) ÷ λ Σ πn (s + p0 / λ).
 */
const embeddedChain = ({ fixedMs, perItemMs, perMs, maxBatchSize }: Queue, states = 600): number => {
  const runMs = (n: number): number => fixedMs + perItemMs * Math.min(n, maxBatchSize);
  const arrivals: number[][] = [];
  for (let n = 0; n <= states; n++) {
    const mean = perMs * runMs(n);
    const law = [Math.exp(-mean)];
    for (let k = 1; k <= states; k++) law.push((law[k - 1]! * mean) / k);
    arrivals.push(law);
  }
  let stationary = new Float64Array(states + 1).fill(0);
  stationary[1] = 1;
  for (let round = 0; round < 2000; round++) {
    const next = new Float64Array(states + 1);
    for (let n = 1; n <= states; n++) {
      if (stationary[n]! < 1e-14) continue;
      const left = Math.max(0, n - maxBatchSize);
      for (let k = 0; left + k <= states; k++) next[Math.max(1, left + k)]! += stationary[n]! * arrivals[n]![k]!;
    }
    const total = next.reduce((sum, share) => sum + share, 0);
    let change = 0;
    for (let n = 0; n <= states; n++) change += Math.abs((next[n]! /= total) - stationary[n]!);
    stationary = next;
    if (change < 1e-10) break;
  }
  let itemMs = 0;
  let cycleMs = 0;
  for (let n = 1; n <= states; n++) {
    const s = runMs(n);
    itemMs += stationary[n]! * (n * s + (perMs * s * s) / 2);
    cycleMs += stationary[n]! * (s + (n <= maxBatchSize ? arrivals[n]![0]! / perMs : 0));
  }
  return itemMs / (perMs * cycleMs);
};

const within = (got: number, wanted: number, share: number): void =>
  assert.ok(Math.abs(got / wanted - 1) <= share, `${got.toFixed(3)} ms, theory ${wanted.toFixed(3)} ms`);

const chains: [load: number, items: number][] = [
  [0.1, 60_000],
  [0.5, 100_000],
  [0.9, 150_000],
];
for (const [load, items] of inProof<[load: number, items: number][]>(chains, [[0.1, 20_000]])) {
  test(`greedy at load ${load} is within 1 % of the exact embedded chain`, async () => {
    const maxBatchSize = 32;
    const queue = { fixedMs: 10, perItemMs: 0.3, maxBatchSize, perMs: (load * maxBatchSize) / 19.6 };
    within(await simulated(queue, greedy(), items), embeddedChain(queue), 0.01);
  });
}

test("the exact chain and the simulator respect Inoue's bound for unbounded batches, which is tight within 5 %", async () => {
  // Y. Inoue, Queueing analysis of GPU-based inference servers with dynamic batching, arXiv:1912.06322, theorem 2.
  const queue = { fixedMs: 10, perItemMs: 0.3, perMs: 2, maxBatchSize: Infinity };
  const { fixedMs: t, perItemMs: a, perMs: l } = queue;
  const la = l * a;
  const phi0 = ((a + t) / (2 * (1 - la))) * (1 + 2 * l * t + (1 - l * t) / (1 + la));
  const phi1 = (1.5 * t) / (1 - la) + ((a / 2) * (la + 2)) / (1 - la * la);
  const bound = Math.min(phi0, phi1);
  const exact = embeddedChain(queue);
  within(exact, 38.11, 0.001);
  assert.ok(exact <= bound && exact >= 0.95 * bound, `exact ${exact}, bound ${bound}`);
  if (inProof(true, false)) within(await simulated(queue, greedy(), 150_000), exact, 0.01);
});

test("runs of one are M/D/1, and auto stays within 5 % of it where there is nothing to amortise", async () => {
  const items = inProof(60_000, 20_000);
  for (const load of inProof([0.3, 0.6], [0.3])) {
    const queue = { fixedMs: 0, perItemMs: 2, perMs: load / 2, maxBatchSize: 32 };
    const theory = 2 + (load * 2) / (2 * (1 - load));
    within(await simulated(queue, { name: "singles", decide: () => ({ run: 1 }) }, items), theory, 0.01);
    const ours = await simulated(queue, auto(), items);
    assert.ok(ours <= 1.05 * theory, `auto ${ours} ms, M/D/1 ${theory} ms at load ${load}`);
  }
});

test("one slot, steady Poisson: auto is within 1 % of greedy where s(0) >= 30 slopes, within 4 % elsewhere", async () => {
  const items = inProof(40_000, 15_000);
  for (const [fixedMs, perItemMs, allowed] of [
    [10, 0.3, 1.01],
    [0.3, 0.15, 1.04],
  ] as const) {
    for (const load of inProof([0.2, 0.8], [0.8])) {
      const perMs = (load * 32) / (fixedMs + 32 * perItemMs);
      const queue = { fixedMs, perItemMs, perMs, maxBatchSize: 32 };
      const ratio = (await simulated(queue, auto(), items)) / (await simulated(queue, greedy(), items));
      assert.ok(ratio <= allowed, `(${fixedMs}, ${perItemMs}) at load ${load}: ${ratio.toFixed(4)} of greedy's mean`);
    }
  }
});
