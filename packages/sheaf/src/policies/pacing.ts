import { nextSize, type CostModel } from "./cost-model.ts";

/**
 * The batch size worth waiting for where several slots are free: the b with the least
 *
 *   s(b) + (b − 1) / 2λ + s(b) / 16b · ρ^(√(2(W + 1)) − 1) / (1 − ρ),   ρ = λ s(b) / (b W),
 *
 * that is run time, the mean wait for the rest of the batch, and the wait for a slot: Allen and Cunneen's approximation
 * for W servers, with batches that arrive b times more evenly than their items. Its factor 1/(2W) reads 1/16 here: with
 * few slots it overstates the wait, which whoever finds a slot busy spends on filling a batch.
 *
 * @param perMs λ, arrivals per millisecond, > 0
 * @returns 1 … maxBatchSize; not always an integer
 */
export function pacedSize(cost: CostModel, perMs: number, slots: number, maxBatchSize: number): number {
  // At 4 s(0) / slope items 80 % of what batching can gain is in hand.
  const most = Math.max(1, Math.min(maxBatchSize, (4 * cost.fixedMs) / cost.perItemMs, 65_536));
  const exponent = Math.sqrt(2 * (slots + 1)) - 1;
  let best = most;
  let lowestMs = Infinity;
  for (let size = 1; ; size = Math.min(most, nextSize(size))) {
    const runMs = cost.at(size);
    const certainMs = runMs + (size - 1) / (2 * perMs);
    const busy = (perMs * runMs) / (size * slots);
    if (certainMs >= lowestMs) break;
    if (busy < 0.98) {
      const latencyMs = certainMs + ((runMs / (16 * size)) * busy ** exponent) / (1 - busy);
      if (latencyMs < lowestMs) {
        lowestMs = latencyMs;
        best = size;
      }
    }
    if (size >= most) break;
  }
  return best;
}

/**
 * Whether idle slots would lose more by small batches than callers lose by a hold: only where sharing is most of what a
 * batch gains, so that two halves take 1.42 times the whole. It is s(0) / s(size) = 0.42 of a straight line. With less
 * to share (a steep line, a square root, a cost that grows faster than its size), slots that are always busy fill the
 * batches by themselves, and a hold only makes all of them longer.
 */
export const isWorthPacing = (cost: CostModel, size: number): boolean => 2 * cost.at(size / 2) >= 1.42 * cost.at(size);
