/** @import { BatcherSecond } from "../batcher-second.ts" */

/** Above this, a bar of the batch sizes covers a range of them. */
const maxBars = 32;

/**
 * Upper bounds of the bars of batch sizes: every size up to 32, else at most 32 even steps or powers of two.
 * @param {number} maxBatchSize Infinity where there is no limit
 */
export function sizeBounds(maxBatchSize) {
  const step = Math.ceil(maxBatchSize / maxBars);
  let bound = maxBatchSize <= 1024 ? step : 1;
  const bounds = [bound];
  while (bound < Math.min(maxBatchSize, 2 ** 20)) {
    bound = Math.min(maxBatchSize, maxBatchSize <= 1024 ? bound + step : bound * 2);
    bounds.push(bound);
  }
  return bounds;
}

/** The bar that a size counts in; sizes above the last bound count in the last. */
export function barOf(/** @type {number} */ size, /** @type {readonly number[]} */ bounds) {
  const bar = bounds.findIndex((bound) => size <= bound);
  return bar === -1 ? bounds.length - 1 : bar;
}

/** The data of the charts. */
export const shownS = 120;

/** The last two minutes of one batcher, second by second. */
export class History {
  /** @type {{ atMs: number, second: BatcherSecond }[]} */
  points = [];

  /** @param {number} atMs @param {BatcherSecond} second */
  add(atMs, second) {
    this.points.push({ atMs, second });
    while (this.points.length > 0 && atMs - this.points[0].atMs > (shownS + 2) * 1000) this.points.shift();
  }

  over(/** @type {number} */ seconds) {
    const lastAtMs = this.points.at(-1)?.atMs ?? 0;
    const shown = this.points.filter(({ atMs }) => lastAtMs - atMs < seconds * 1000).map(({ second }) => second);
    const sum = (/** @type {(second: BatcherSecond) => number} */ of) =>
      shown.reduce((total, second) => total + of(second), 0);
    /** @type {Record<string, number>} */
    const reasons = {};
    /** @type {Record<string, number>} */
    const sizeReasons = {};
    /** @type {Record<string, number>} */
    const failures = {};
    /** @type {Map<number, number>} */
    const sizes = new Map();
    for (const second of shown) {
      for (const [name, batches] of Object.entries(second.reasons)) reasons[name] = (reasons[name] ?? 0) + batches;
      for (const [name, batches] of Object.entries(second.sizeReasons))
        sizeReasons[name] = (sizeReasons[name] ?? 0) + batches;
      for (const [code, batches] of Object.entries(second.failures)) failures[code] = (failures[code] ?? 0) + batches;
      for (const [size, batches] of second.sizes) sizes.set(size, (sizes.get(size) ?? 0) + batches);
    }
    return {
      seconds: Math.max(1, shown.length),
      ok: sum(({ items }) => items.ok),
      error: sum(({ items }) => items.error),
      timeout: sum(({ items }) => items.timeout),
      rejected: sum(({ items }) => items.rejected),
      aborted: sum(({ items }) => items.aborted),
      batches: sum(({ batches }) => batches),
      hits: sum(({ cache }) => cache?.hits ?? 0),
      misses: sum(({ cache }) => cache?.misses ?? 0),
      savedRuns: sum(({ cache }) => cache?.savedRuns ?? 0),
      batchedItems: sum(({ batchedItems }) => batchedItems),
      dispatched: {
        live: sum(({ lanes }) => lanes?.live.dispatched ?? 0),
        bulk: sum(({ lanes }) => lanes?.bulk.dispatched ?? 0),
      },
      refused: {
        live: sum(({ lanes }) => lanes?.live.rejected ?? 0),
        bulk: sum(({ lanes }) => lanes?.bulk.rejected ?? 0),
      },
      reasons,
      sizeReasons,
      failures,
      sizes,
    };
  }

  /** The last batches, oldest first. */
  recent(/** @type {number} */ most) {
    /** @type {(readonly [number, string, number])[]} */
    const batches = [];
    for (let i = this.points.length - 1; i >= 0 && batches.length < most; i--) {
      batches.unshift(...this.points[i].second.recent.slice(-(most - batches.length)));
    }
    return batches;
  }

  /**
   * Columns for a time chart: seconds before now, and one value per point; a hole where seconds are missing.
   * @param {((second: BatcherSecond) => number | null)[]} values
   */
  columns(values) {
    /** @type {(number | null)[][]} */
    const columns = [[], ...values.map(() => /** @type {(number | null)[]} */ ([]))];
    const nowMs = this.points.at(-1)?.atMs ?? 0;
    let beforeMs = Infinity;
    for (const { atMs, second } of this.points) {
      if (atMs - beforeMs > 2500) {
        columns[0].push((beforeMs + 1000 - nowMs) / 1000);
        values.forEach((_, index) => columns[index + 1].push(null));
      }
      columns[0].push((atMs - nowMs) / 1000);
      values.forEach((of, index) => columns[index + 1].push(of(second)));
      beforeMs = atMs;
    }
    return columns;
  }
}
