import type { Clock } from "../../core/runtime/runtime.ts";

const limit = 5;
const peaceMs = 60_000;
const firstPauseMs = 100;
const longestPauseMs = 30_000;

/**
 * How long a place stays empty after a crash: 100 ms, doubling to 30 s. After 60 s without a crash or a pause it begins
 * again at 100 ms.
 */
export class RestartPauses {
  readonly #clock: Clock;
  #crashes = 0;
  #endsAtMs = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a crash. @returns the pause before the restart in milliseconds. */
  crashed(): number {
    const nowMs = this.#clock.now();
    if (nowMs - this.#endsAtMs >= peaceMs) this.#crashes = 0;
    const pauseMs = Math.min(firstPauseMs * 2 ** this.#crashes, longestPauseMs);
    this.#crashes++;
    this.#endsAtMs = Math.max(this.#endsAtMs, nowMs + pauseMs);
    return pauseMs;
  }

  /** Takes the last crash back: it was not the worker's fault. */
  pardon(): void {
    this.#crashes = Math.max(0, this.#crashes - 1);
  }

  /** More than 5 crashes: calls are refused instead of waiting for the next start. */
  get isPastLimit(): boolean {
    return this.#crashes > limit;
  }

  /** How often it crashed, for messages. */
  get rule(): string {
    return `more than ${limit} times, less than ${peaceMs / 1000} s apart`;
  }
}
