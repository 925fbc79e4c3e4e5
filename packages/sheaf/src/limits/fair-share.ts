/** What a process could use, as shares of the limit, 0 to 1. */
export interface RateDemand {
  readonly live: number;
  /** Gets what live calls of all processes leave, and at least a twentieth. */
  readonly bulk: number;
}

/** Share of the limit for the bulk of all processes together, however much live calls need. */
const bulkFloor = 0.05;

/**
 * One process's share of a limit, by max-min fairness ("Data Networks", Bertsekas and Gallager, 1992, section 6.5.2): a process that
 * needs less than an even share gets what it needs, and the others divide the rest evenly. Bulk divides what live calls leave. If all
 * needs together are below the limit, the remainder is divided evenly.
 */
export function fairShare(own: RateDemand, others: readonly RateDemand[]): number {
  const all = [own, ...others];
  const sum = (lane: keyof RateDemand): number => all.reduce((total, demand) => total + demand[lane], 0);
  const forLive = 1 - Math.min(bulkFloor, sum("bulk"));
  const forBulk = 1 - Math.min(forLive, sum("live"));
  const part = (lane: keyof RateDemand, of: number): number => maxMin(own[lane], all.map((demand) => demand[lane]), of); // prettier-ignore
  const left = Math.max(0, forBulk - sum("bulk"));
  // Rounding must not make it more.
  return Math.min(1, part("live", forLive) + part("bulk", forBulk) + left / all.length);
}

function maxMin(own: number, demands: readonly number[], of: number): number {
  let left = of;
  for (const [index, demand] of demands.toSorted((a, b) => a - b).entries()) {
    const even = left / (demands.length - index);
    if (demand >= even) return Math.min(own, even);
    left -= demand;
  }
  return own;
}
