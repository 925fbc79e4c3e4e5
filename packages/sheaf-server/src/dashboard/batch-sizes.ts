/** Above this, a bar of the histogram covers a range of sizes. */
const maxBars = 32;

/** Upper bounds of the bars of a batch-size histogram: every size up to 32, else at most 32 even steps or powers of two. */
export function sizeBounds(maxBatchSize: number): number[] {
  if (maxBatchSize <= maxBars) return Array.from({ length: maxBatchSize }, (_, index) => index + 1);
  if (maxBatchSize <= 1024) {
    const step = Math.ceil(maxBatchSize / maxBars);
    const bars = Math.ceil(maxBatchSize / step);
    return Array.from({ length: bars }, (_, index) => Math.min(maxBatchSize, (index + 1) * step));
  }
  const bounds = [1];
  while (bounds.at(-1)! < Math.min(maxBatchSize, 2 ** 20)) bounds.push(Math.min(maxBatchSize, bounds.at(-1)! * 2));
  return bounds;
}

/** The bar that a size counts in; sizes above the last bound count in the last. */
export function barOf(size: number, bounds: readonly number[]): number {
  let low = 0;
  let high = bounds.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (size <= bounds[middle]!) high = middle;
    else low = middle + 1;
  }
  return low;
}
