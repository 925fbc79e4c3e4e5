import type { Clock } from "../../core/runtime/clock.ts";

const limit = 5;
const windowMs = 60_000;
const firstDelayMs = 100;
const longestDelayMs = 5_000;

/** How soon a crashed instance may restart: 100 ms, doubling, and not at all after 5 crashes in 60 s. */
export class RestartBudget {
  readonly #clock: Clock;
  #crashesAtMs: number[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a crash. @returns the delay before the restart in milliseconds, or undefined past the limit. */
  crashed(): number | undefined {
    const nowMs = this.#clock.now();
    this.#crashesAtMs = this.#crashesAtMs.filter((atMs) => nowMs - atMs < windowMs);
    this.#crashesAtMs.push(nowMs);
    const crashes = this.#crashesAtMs.length;
    if (crashes > limit) return undefined;
    return Math.min(firstDelayMs * 2 ** (crashes - 1), longestDelayMs);
  }

  /** For messages. */
  get rule(): string {
    return `limit ${limit} in ${windowMs / 1000} s`;
  }
}
