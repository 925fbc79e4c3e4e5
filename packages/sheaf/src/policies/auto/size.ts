import { nextSize } from "../cost-model.ts";
import type { QueueView } from "../policy.ts";
import type { ArrivalRate } from "./arrival-rate.ts";
import type { Pacing } from "./pacing.ts";
import {
  batchesToTrust,
  busyAtMost,
  noiseDiscount,
  probeEvery,
  seenEnough,
  seenPerNoise,
  triedEnough,
} from "./constants.ts";

/**
 * Rule *size*: of n waiting items run the k with the least mean latency of draining all n in runs of k, with what comes
 * meanwhile: s(k) (1 + 2n / (k W (1 − busy))). It sends items one by one where there is nothing to share, ends a batch at a
 * step of the cost, and splits a backlog over free slots.
 */
export class SizeRule {
  #avoided = 0;
  #untried = 0;

  of(view: QueueView, rate: ArrivalRate, pacing: Pacing): number {
    const { nowMs, waiting, slots, maxBatchSize, cost } = view;
    const most = Math.min(waiting, maxBatchSize);
    if (most < 2 || cost.batches < batchesToTrust) return most;
    const perItemMs = Number.isFinite(maxBatchSize) ? cost.at(maxBatchSize) / maxBatchSize : cost.perItemMs;
    const busy = Math.min(busyAtMost, (rate.perMs(nowMs) * perItemMs) / slots);
    const ahead = (2 * waiting) / (slots * (1 - busy));
    let best = most;
    let lowest = (cost.at(most) * (1 + ahead / most)) / (1 + noiseDiscount * cost.noise);
    // Smaller than paced, batches would use up the slots that the next ones need.
    for (let size = Math.floor(pacing.size(view, rate)); size < most; size = nextSize(size)) {
      const latency = cost.at(size) * (1 + ahead / size);
      if (latency < lowest) {
        lowest = latency;
        best = size;
      }
    }
    if (best === most) return best;
    const isAvoided = most === maxBatchSize && cost.seen(most) < seenEnough + seenPerNoise * cost.noise;
    if (isAvoided && ++this.#avoided % probeEvery === 0) return most;
    const next = nextSize(best);
    const isUntried = next < most && cost.seen(next) < triedEnough;
    return isUntried && ++this.#untried % probeEvery === 0 ? next : best;
  }
}
