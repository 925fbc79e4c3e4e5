/**
 * Gives each refused request of a queue a time of its own to come back, as far apart as the queue can serve them. Requests that were
 * refused together and come back within one drain of the queue are refused again, and clients try only two or three times: of
 * 400 calls on a queue of 64 some got no answer. A client that never comes back costs nothing but its time slot.
 */
export class RetryTimes {
  #nextAtMs = 0;

  /**
   * How long a refused request should wait, in milliseconds: until the queue can be empty, and then until every request that was
   * refused before it can have been served.
   */
  waitMs(nowMs: number, drainMs: number, queued: number): number {
    const firstMs = Math.min(longestMs / 2, Math.max(shortestMs, drainMs));
    const eachMs = (slack * firstMs) / Math.max(1, queued);
    // Where most clients give up, their times must not add up to minutes in which nothing comes.
    const latestAtMs = nowMs + Math.min(longestMs, mostDrains * firstMs);
    const atMs = Math.max(nowMs + firstMs, this.#nextAtMs);
    if (atMs + eachMs > latestAtMs) return Math.ceil(firstMs + Math.random() * (latestAtMs - nowMs - firstMs));
    this.#nextAtMs = atMs + eachMs;
    return Math.ceil(atMs - nowMs + Math.random() * eachMs);
  }
}

/** Requests are more than their runs: they are parsed, copied and answered, on a machine that may do other work too. */
const slack = 1.5;
/** Callers up to this many times the queue get a time of their own. */
const mostDrains = 16;
const shortestMs = 10;
const longestMs = 60_000;
