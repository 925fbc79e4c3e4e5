import { nextSize, type CostModel } from "../../policies/cost-model.ts";

/** Rate that slots serve in time, as a share of the rate that they would serve if calls came evenly (bench -- slo). */
const headroom = 0.8;
/** Extrapolates to at most 2× the largest batch seen; not at all from one size. */
const beyondSeen = 2;
/** A bound: no load that one process sees needs more. */
const mostSlots = 100_000;
const largestSize = 1_000_000;

/** A load, and the limits of batches. */
export interface Load {
  /** Arrivals per millisecond. */
  readonly perMs: number;
  /** Arrival → result. */
  readonly withinMs: number;
  readonly maxBatchSize: number;
}

/**
 * The fewest slots that serve it in time: W of which one ends a run every s(b) / W, so that s(b) (1 + 1 / W) is the longest
 * way of an item. `Infinity` where one item alone takes too long, or more than 100,000 would be needed.
 */
export function slotsFor(cost: CostModel, { perMs, withinMs, maxBatchSize }: Load): number {
  const largest = largestKnown(cost, Math.min(maxBatchSize, largestSize));
  const most = headroom * perSlotMs(cost, largest, withinMs);
  if (most === 0) return Infinity;
  for (let slots = Math.max(1, Math.ceil(perMs / most)); slots <= mostSlots; slots++) {
    const served = slots * headroom * perSlotMs(cost, largest, withinMs / (1 + 1 / slots));
    if (served >= perMs && served > 0) return slots;
  }
  return Infinity;
}

/** The largest batch whose run time is known well enough. */
function largestKnown(cost: CostModel, most: number): number {
  let sizes = 0;
  let largest = 1;
  for (let size = 1; ; size = Math.min(most, nextSize(size))) {
    if (cost.seen(size) >= 1) {
      sizes++;
      largest = size;
    }
    if (size >= most) return Math.min(most, sizes > 1 ? beyondSeen * largest : largest);
  }
}

/** Most items that a slot serves in a millisecond, in runs of at most `longestMs`; 0 where one item alone takes longer. */
function perSlotMs(cost: CostModel, largest: number, longestMs: number): number {
  let most = 0;
  let sizeBefore = 0;
  let msBefore = 0;
  for (let size = 1; ; size = Math.min(largest, nextSize(size))) {
    const runMs = cost.at(size);
    if (runMs > longestMs) {
      const share = (longestMs - msBefore) / (runMs - msBefore);
      return sizeBefore === 0 ? 0 : Math.max(most, (sizeBefore + share * (size - sizeBefore)) / longestMs);
    }
    most = Math.max(most, size / runMs);
    if (size >= largest) return most;
    sizeBefore = size;
    msBefore = runMs;
  }
}
