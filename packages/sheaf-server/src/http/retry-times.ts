/**
 * Spreads the retries of refused requests: each gets its own time, as far apart as the queue can serve them. If all came back within
 * one drain of the queue, many would be refused again, and clients try only two or three times: of 400 calls on a queue of 64 some
 * got no answer. A client that never comes back costs only its time slot.
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
    // If most clients give up, their slots must not add up to minutes without requests.
    const latestAtMs = nowMs + Math.min(longestMs, mostDrains * firstMs);
    const atMs = Math.max(nowMs + firstMs, this.#nextAtMs);
    if (atMs + eachMs > latestAtMs) return Math.ceil(firstMs + Math.random() * (latestAtMs - nowMs - firstMs));
    this.#nextAtMs = atMs + eachMs;
    return Math.ceil(atMs - nowMs + Math.random() * eachMs);
  }
}

/** Allows for the work besides runs: requests are parsed, copied and answered, on a machine that may do other work too. */
const slack = 1.5;
/** Up to this many times the queue's size, each caller gets its own time. */
const mostDrains = 16;
const shortestMs = 10;
const longestMs = 60_000;
