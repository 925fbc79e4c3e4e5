import assert from "node:assert/strict";
import { test } from "node:test";
import { auto, createBatcher, greedy, type Executor, type Policy } from "../../dist/index.js";
import { virtualClock } from "../../dist/testing/index.js";
import { seededRandom } from "../../dist/internal/tuning.js";
import { SharedCore } from "../support/shared-core.js";
import { inProof } from "../support/seeds.js";

const presses = 20;
const callsEach = 200;
const maxBatchSize = 32;
const seeds = [1, 2, 3, 4, 5, 6];

interface Cost {
  readonly fixedMs: number;
  readonly perItemMs: number;
}

/** Presses of 200 calls, 15 ms each, to a worker that takes a batch ahead and shares its core. */
async function pressed({ fixedMs, perItemMs }: Cost, policy: Policy, seed: number) {
  const clock = virtualClock();
  const random = seededRandom(1000 + seed);
  const core = new SharedCore(seed);
  // A thread that must wait for the core reads messages late.
  const messageMs = (): number => random() * (core.isWanted(clock.now()) ? 4 : 1);
  let freeAtMs = 0;
  let cpuMs = 0;
  let latencyMs = 0;
  const worker: Executor<number, number> = {
    slots: 1,
    prefetch: 1,
    ready: () => Promise.resolve(),
    close: () => Promise.resolve(),
    run: async (items, context) => {
      const neededMs = (fixedMs + perItemMs * items.length) * (0.97 + 0.06 * random());
      const startsAtMs = freeAtMs > clock.now() ? freeAtMs : clock.now() + messageMs() / 2;
      const runMs = core.runMs(neededMs, startsAtMs);
      cpuMs += neededMs;
      freeAtMs = startsAtMs + runMs;
      context.measured(runMs);
      await new Promise<void>((resolve) => void clock.at(freeAtMs + messageMs(), resolve));
      return items;
    },
  };
  const batcher = createBatcher(worker, { clock, policy, maxBatchSize });
  await batcher.ready();
  const fullMs = callsEach * (fixedMs / maxBatchSize + perItemMs);
  for (let press = 0; press < presses; press++) {
    const atMs = clock.now() + fullMs * (1 + 2 * random());
    core.parsesUntilMs = atMs + 15;
    const calls = Array.from({ length: callsEach }, async (_, item) => {
      const calledAtMs = atMs + 15 * random();
      await new Promise<void>((resolve) => void clock.at(calledAtMs, resolve));
      await batcher(item);
      latencyMs += clock.now() - calledAtMs;
    });
    await Promise.all(calls);
  }
  await batcher.close();
  return { cpuMs, latencyMs };
}

const geometricMean = (ratios: readonly number[]): number =>
  Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);

const costs: Cost[] = [
  { fixedMs: 0.85, perItemMs: 0.046 },
  { fixedMs: 2, perItemMs: 0.25 },
  { fixedMs: 0.4, perItemMs: 1 },
  { fixedMs: 4, perItemMs: 1 },
];

for (const cost of inProof(costs, costs.slice(0, 1))) {
  const named = `${cost.fixedMs} + ${cost.perItemMs} n ms`;
  test(`${named} beside a neighbour: auto's latency and CPU time are at most 1.05 of greedy's`, async () => {
    const latency: number[] = [];
    const cpu: number[] = [];
    for (const seed of seeds) {
      const [own, reference] = [await pressed(cost, auto(), seed), await pressed(cost, greedy(), seed)];
      latency.push(own.latencyMs / reference.latencyMs);
      cpu.push(own.cpuMs / reference.cpuMs);
    }
    const shown = `latency ${latency.map((ratio) => ratio.toFixed(2)).join(" ")}, CPU ${cpu.map((ratio) => ratio.toFixed(2)).join(" ")} at seeds ${seeds.join(" ")}`;
    assert.ok(geometricMean(latency) <= 1.05 && geometricMean(cpu) <= 1.05, shown);
  });
}
