import { backOffMs } from "./back-off.ts";

/** A service that fails one request in ten has this many failures in a row once in 100,000 requests. */
const failuresInARow = 5;

/**
 * Pauses requests while everything fails: for half a second at first, twice as long after each further failed round, at most eight
 * seconds. The first requests after a pause show whether the service is back.
 */
export class OutagePause {
  readonly #random: () => number;
  #failures = 0;
  #pauses = 0;
  /** A request that was sent before the last pause says nothing about the service after it. */
  #pausedAtMs = -Infinity;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** The service answered, even if with a refusal. */
  answered(): void {
    this.#failures = this.#pauses = 0;
  }

  /** The service failed a request. @returns the pause in milliseconds, or undefined for none. */
  failed(sentAtMs: number, nowMs: number): number | undefined {
    this.#failures++;
    if (this.#failures < failuresInARow || sentAtMs <= this.#pausedAtMs) return undefined;
    this.#pausedAtMs = nowMs;
    return backOffMs(++this.#pauses, this.#random());
  }
}
