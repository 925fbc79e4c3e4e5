/** Finagle's share: of each five requests one may be a retry. */
const defaultShare = 0.2;
/** Retries that a client has before its first success. */
const reserve = 10;
/** However many successes there were: an outage after a good day is no reason for thousands of retries. */
const mostSaved = 100;

/**
 * Retries that successes have paid for. A client that repeats every failure multiplies the load of a service exactly
 * when it has none to spare; one with a budget adds at most `share` of its successes, and nothing while all requests fail.
 * After "Handling Overload" (Site Reliability Engineering, 2016, chapter 21), Finagle's `RetryBudget`, and gRPC's retry
 * throttling (A6), which counts successes as well.
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

  /** Takes one retry out of the budget. @returns false where none is left. */
  spend(): boolean {
    // Ten times 0.1 is a little less than 1.
    if (this.#left < 1 - 1e-9) return false;
    this.#left--;
    return true;
  }

  /** The service works, so that the retry does not count. */
  refund(): void {
    this.#left++;
  }
}
