import { nextSize, type CostModel } from "../cost-model.ts";
import type { QueueView } from "../policy.ts";
import type { ArrivalRate } from "./arrival-rate.ts";
import {
  halvesOverWhole,
  itemsShared,
  itemsShort,
  largestPacedSize,
  learningBatches,
  maxFixedShares,
  pacedBusy,
  pacedBusyAtMost,
  refreshBatches,
  refreshRateShare,
  slotWaitDivisor,
} from "./constants.ts";

/**
 * Rule *pacing*: several idle slots would grab crumbs, and be busy with them when the next items come. So a few items wait
 * for their slot's share of a run.
 */
export class Pacing {
  #batches = -Infinity;
  #perMs = 0;
  #maxBatchSize = 0;
  #size = 1;
  #holds = false;

  /** @param share the items that a slot can expect: with as many here, no other is worth waiting for */
  until(view: QueueView, share: number, rate: ArrivalRate): number {
    const { nowMs, waiting, oldestAtMs, slots, cost } = view;
    if (waiting >= share) return nowMs;
    const enough = this.size(view, rate);
    if (!this.#holds || waiting >= enough - itemsShort) return nowMs;
    return oldestAtMs + cost.line(enough) / (pacedBusy * slots);
  }

  /** The batch size worth waiting for; 1 … maxBatchSize, not always an integer. Asked for at every decision. */
  size({ nowMs, slots, maxBatchSize, cost }: QueueView, rate: ArrivalRate): number {
    // With few slots, or little to share, a batch is soon worth more than the slots it leaves free.
    if (slots === 1 || cost.fixedMs * slots <= itemsShared * cost.perItemMs) return 1;
    const perMs = rate.perMs(nowMs);
    const { batches } = cost;
    const isFresh =
      batches - this.#batches < (batches < learningBatches ? 1 : refreshBatches) &&
      Math.abs(perMs - this.#perMs) <= refreshRateShare * this.#perMs;
    if (!isFresh || this.#maxBatchSize !== maxBatchSize) {
      this.#batches = batches;
      this.#perMs = perMs;
      this.#maxBatchSize = maxBatchSize;
      this.#size = pacedSize(cost, perMs, slots, maxBatchSize);
      // Idle slots lose more by small batches than callers lose by a hold only where most of a batch's gain comes from sharing.
      // With less to share (a steep line, a square root, a cost that grows faster than its size), slots that are always
      // busy fill the batches by themselves, and a hold only makes all of them longer.
      this.#holds = 2 * cost.at(this.#size / 2) >= halvesOverWhole * cost.at(this.#size);
    }
    return this.#size;
  }
}

/**
 * The batch size worth waiting for where several slots are free: the b with the least
 *
 *   s(b) + (b − 1) / 2λ + s(b) / 16b · ρ^(√(2(W + 1)) − 1) / (1 − ρ),   ρ = λ s(b) / (b W),
 *
 * that is run time, the mean wait for the rest of the batch, and the wait for a slot: Allen and Cunneen's approximation
 * for W servers, with batches that arrive b times more evenly than their items.
 *
 * @param perMs λ, arrivals per millisecond, > 0
 */
function pacedSize(cost: CostModel, perMs: number, slots: number, maxBatchSize: number): number {
  const most = Math.max(1, Math.min(maxBatchSize, (maxFixedShares * cost.fixedMs) / cost.perItemMs, largestPacedSize));
  const exponent = Math.sqrt(2 * (slots + 1)) - 1;
  let best = most;
  let lowestMs = Infinity;
  for (let size = 1; ; size = Math.min(most, nextSize(size))) {
    const runMs = cost.at(size);
    const certainMs = runMs + (size - 1) / (2 * perMs);
    const busy = (perMs * runMs) / (size * slots);
    if (certainMs >= lowestMs) break;
    if (busy < pacedBusyAtMost) {
      const latencyMs = certainMs + ((runMs / (slotWaitDivisor * size)) * busy ** exponent) / (1 - busy);
      if (latencyMs < lowestMs) {
        lowestMs = latencyMs;
        best = size;
      }
    }
    // Not `size >= most`: a cost that is not a number must not keep it going.
    if (!(size < most)) break;
  }
  return best;
}
