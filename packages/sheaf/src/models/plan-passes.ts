import { check, checkPositive } from "../shared/checks.ts";
import type { PassCosts } from "./pass-cost.ts";

export interface PassLimits {
  /**
   * Most positions of a pass: its items times the longest length. A longer item has a pass of its own. Number > 0.
   * @default 16384
   */
  readonly maxPaddedLength?: number | undefined;
}

const defaultMaxPaddedLength = 16_384;
/** Bounds the search; in a pass of this size the fixed part no longer matters. */
const mostItems = 512;

/**
 * Cuts a batch into passes of similar length with the least expected total time: dynamic programming over the items in order of
 * length, O(n · 512) for n items.
 * @param lengths of the items, each > 0
 * @returns the indices of the items of each pass, rising; every index is in exactly one. Passes of short items come first.
 * @throws {RangeError} a length that is not a number > 0.
 * @experimental It may change in any minor version.
 */
export function planPasses(
  lengths: readonly number[],
  cost: PassCosts,
  { maxPaddedLength = defaultMaxPaddedLength }: PassLimits = {},
): number[][] {
  checkPositive("maxPaddedLength", maxPaddedLength);
  for (const [index, length] of lengths.entries())
    check(length > 0 && length < Infinity, `lengths[${index}]`, "a number > 0", length);
  const order = lengths.map((_, index) => index).sort((a, b) => lengths[a]! - lengths[b]!);
  const leastMs = new Float64Array(order.length + 1);
  const starts = new Int32Array(order.length + 1);
  for (let end = 1; end <= order.length; end++) {
    const longest = lengths[order[end - 1]!]!;
    leastMs[end] = Infinity;
    const most = Math.max(1, Math.min(end, mostItems, Math.floor(maxPaddedLength / longest)));
    for (let size = 1; size <= most; size++) {
      const totalMs = leastMs[end - size]! + cost.of(size, longest);
      // Of plans that cost the same, the one with fewer passes.
      if (totalMs > leastMs[end]!) continue;
      leastMs[end] = totalMs;
      starts[end] = end - size;
    }
  }
  const passes: number[][] = [];
  for (let end = order.length; end > 0; end = starts[end]!)
    passes.unshift(order.slice(starts[end], end).sort((a, b) => a - b));
  return passes;
}
