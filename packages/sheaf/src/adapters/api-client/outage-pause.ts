import { backOffMs } from "./back-off.ts";

/** A service that fails one request in ten fails this many in a row once in 100,000 requests. */
const failuresInARow = 5;

/**
 * Where everything fails, nothing is sent for a while: half a second at first, twice as long after each round that fails
 * too, at most eight seconds. The first requests after a pause find out whether the service is back.
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

  /** The service answered, be it with a refusal. */
  answered(): void {
    this.#failures = this.#pauses = 0;
  }

  /** The service failed a request. @returns for how many milliseconds to send nothing; undefined for no pause. */
  failed(sentAtMs: number, nowMs: number): number | undefined {
    this.#failures++;
    if (this.#failures < failuresInARow || sentAtMs <= this.#pausedAtMs) return undefined;
    this.#pausedAtMs = nowMs;
    return backOffMs(++this.#pauses, this.#random());
  }
}
