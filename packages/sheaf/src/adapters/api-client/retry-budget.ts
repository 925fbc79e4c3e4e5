/** Finagle's share: one retry for every five successes. */
const defaultShare = 0.2;
/** Retries that a client has before its first success. */
const reserve = 10;
/** Most retries saved up, so that an outage after a good day does not cause thousands of retries. */
const mostSaved = 100;

/**
 * Retries earned by successes. A client that repeats every failure multiplies the load of a service just when it has no capacity to
 * spare. A client with a budget adds at most `share` of its successes, and nothing while all requests fail. After "Handling Overload"
 * (Site Reliability Engineering, 2016, chapter 21), Finagle's `RetryBudget`, and gRPC's retry throttling (A6), which counts successes
 * as well.
 */
export class RetryBudget {
  readonly #share: number;
  #left = reserve;

  constructor(share: number = defaultShare) {
    this.#share = share;
  }

  succeeded(): void {
    this.#left = Math.min(mostSaved, this.#left + this.#share);
  }

  /** Takes one retry out of the budget. @returns false if none is left. */
  spend(): boolean {
    // Ten times 0.1 is a little less than 1.
    if (this.#left < 1 - 1e-9) return false;
    this.#left--;
    return true;
  }

  /** Gives a retry back, because the service works. */
  refund(): void {
    this.#left++;
  }
}
