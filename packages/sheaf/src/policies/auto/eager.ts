import type { CostModel } from "../cost-model.ts";
import { eagerBatches, eagerSettling, packetsPerBatch } from "./constants.ts";

/** A load for slots that never hold. */
export interface EagerLoad {
  /** Arrivals per millisecond. */
  readonly perMs: number;
  readonly slots: number;
  readonly maxBatchSize: number;
  /** Arrival → result. */
  readonly withinMs: number;
}

/**
 * The share of Poisson arrivals that slots do not answer within `withinMs` where each takes all that waits as soon as it is
 * free. A short simulation with the learned cost, always on the same random numbers, because no closed form is known: the slot
 * that finds the most items runs for longest and finds the most again, while the others run crumbs.
 */
export function eagerLateShare(cost: CostModel, { perMs, slots, maxBatchSize, withinMs }: EagerLoad): number {
  let seed = 1;
  const uniform = (): number => (seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32;
  const normal = (): number => Math.sqrt(3) * (uniform() + uniform() + uniform() + uniform() - 2);
  // Items come in packets, a few to a batch: one by one they would take most of the time of the simulation.
  const left = slots - perMs * cost.perItemMs;
  const batch = Math.min(maxBatchSize, left > 0 ? (perMs * cost.fixedMs) / left : maxBatchSize);
  // More comes than is served, in batches of any size.
  if (batch === Infinity) return 1;
  const packet = Math.max(1, Math.floor(batch / packetsPerBatch));
  const most = Math.max(1, Math.floor(maxBatchSize / packet));
  const spread = 1 / (3 * Math.sqrt(packet));
  // The time in which so many items come: Wilson and Hilferty's approximation of the gamma distribution.
  const gapMs = (): number => (packet / perMs) * Math.max(0, 1 - spread ** 2 + spread * normal()) ** 3;
  // The simulation has no use for more slots than it has batches.
  const freeAtMs = Array.from({ length: Math.min(slots, eagerBatches) }, (_, slot) => (slot * cost.at(batch)) / slots);
  const arrivedAtMs: number[] = [];
  let nextAtMs = gapMs();
  let taken = 0;
  let settled = 0;
  let late = 0;
  for (let run = 0; run < eagerBatches; run++) {
    const slot = freeAtMs.indexOf(Math.min(...freeAtMs));
    const startAtMs = Math.max(freeAtMs[slot]!, arrivedAtMs[taken] ?? nextAtMs);
    // More comes than is served: there would be no end to it, also where one batch takes all that waits.
    for (; nextAtMs <= startAtMs; nextAtMs += gapMs())
      if (arrivedAtMs.push(nextAtMs) - taken > eagerBatches * packetsPerBatch) return 1;
    const packets = Math.min(most, arrivedAtMs.length - taken);
    const endAtMs = startAtMs + cost.at(packets * packet) * Math.max(0, 1 + cost.noise * normal());
    freeAtMs[slot] = endAtMs;
    if (run === eagerSettling) settled = taken;
    for (const end = taken + packets; taken < end; taken++)
      if (run >= eagerSettling && endAtMs - arrivedAtMs[taken]! > withinMs) late++;
  }
  return late / Math.max(1, taken - settled);
}
