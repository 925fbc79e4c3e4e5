import { nextSize } from "../cost-model.ts";
import type { QueueView } from "../policy.ts";
import type { ArrivalRate } from "./arrival-rate.ts";
import type { Pacing } from "./pacing.ts";
import {
  batchesToTrust,
  busyAtMost,
  crowdedDiscount,
  crowdedNoise,
  noiseDiscount,
  probeEvery,
  seenEnough,
  seenPerNoise,
} from "./constants.ts";

/**
 * Rule *size*: of n waiting items run the k with the least mean latency of draining all n in runs of k, with what comes
 * meanwhile: s(k) (1 + 2n / (k W (1 − busy))). It sends items one by one where there is nothing to share, ends a batch at a
 * step of the cost, and splits a backlog over free slots.
 */
export class SizeRule {
  /** Decisions so far that a size in doubt was passed over or tried. */
  #doubts = 0;

  of(view: QueueView, rate: ArrivalRate, pacing: Pacing): number {
    const { nowMs, waiting, slots, maxBatchSize, cost } = view;
    const most = Math.min(waiting, maxBatchSize);
    // Items whose weights are known to cost have been chosen by them.
    if (most < 2 || cost.batches < batchesToTrust || cost.perWeightMs > 0) return most;
    const perItemMs = maxBatchSize < Infinity ? cost.at(maxBatchSize) / maxBatchSize : cost.perItemMs;
    const busy = Math.min(busyAtMost, (rate.perMs(nowMs) * perItemMs) / slots);
    const ahead = (2 * waiting) / (slots * (1 - busy));
    let best = most;
    let lowest = (cost.at(most) * (1 + ahead / most)) / neededGain(cost.noise);
    // Smaller than paced, batches would use up the slots that the next ones need.
    for (let size = Math.floor(pacing.size(view, rate)); size < most; size = nextSize(size)) {
      const latency = cost.at(size) * (1 + ahead / size);
      if (latency < lowest) {
        lowest = latency;
        best = size;
      }
    }
    if (best === most) return best;
    // A larger size that was seen too little is tried again, or one slow run would keep larger batches away for good.
    const enough = seenEnough + seenPerNoise * cost.noise;
    let next = nextSize(best);
    while (next < Math.min(most, 2 * best) && cost.seen(next) >= enough) next = nextSize(next);
    return cost.seen(next) < enough && ++this.#doubts % probeEvery === 0 ? Math.min(next, most) : best;
  }
}

/** How many times the expected latency of a smaller size the largest must have before the smaller one is chosen. */
const neededGain = (noise: number): number =>
  1 + noiseDiscount * noise + crowdedDiscount * Math.max(0, noise - crowdedNoise);
