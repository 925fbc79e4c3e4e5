/** A run pads every text to its longest: at most this share of its computed positions may be padding … */
const maxPaddingRate = 0.25;
/** … once it is worth a cut: below so many tokens a run of its own costs more than the padding. */
const fewestTokensToCut = 256;

/**
 * Parts a batch into runs of like length, so that padding is bounded: each run pads by at most a quarter and stays within
 * `maxPaddedTokens` (longest × count). @returns the indices of each run's texts; every index is in exactly one.
 */
export function lengthBuckets(lengths: readonly number[], maxPaddedTokens: number): number[][] {
  const byLength = lengths.map((_, i) => i).sort((a, b) => lengths[a]! - lengths[b]!);
  const runs: number[][] = [];
  let run: number[] = [];
  let realTokens = 0;
  for (const index of byLength) {
    const length = lengths[index]!;
    const paddedTokens = length * (run.length + 1);
    const paddingRate = 1 - (realTokens + length) / paddedTokens;
    const isTooMuch = paddedTokens > maxPaddedTokens;
    const isTooUneven = paddedTokens >= fewestTokensToCut && paddingRate > maxPaddingRate;
    if (run.length > 0 && (isTooMuch || isTooUneven)) {
      runs.push(run);
      run = [];
      realTokens = 0;
    }
    run.push(index);
    realTokens += length;
  }
  if (run.length > 0) runs.push(run);
  return runs;
}
