/**
 * One process's share of a limit that several divide, by max-min fairness ("Data Networks", Bertsekas and Gallager, 1992,
 * section 6.5.2): a process that needs less than an even part gets that, and the others divide the rest evenly. If all
 * needs together are less than the limit, the remainder is divided evenly.
 * @param own The part of the limit that this process could use, 0 to 1.
 * @param others Those of the other processes.
 */
export function fairShare(own: number, others: readonly number[]): number {
  const demands = [own, ...others].sort((a, b) => a - b);
  let left = 1;
  for (const [index, demand] of demands.entries()) {
    const even = left / (demands.length - index);
    if (demand >= even) return Math.min(own, even);
    left -= demand;
  }
  return own + left / demands.length;
}
