import type { Clock } from "../../../core/runtime/runtime.ts";

/** One timer per purpose: setting it again before it has fired has no effect. */
export class Timers {
  readonly #clock: Clock;
  readonly #cancels: Map<string, () => void> = new Map();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  after(purpose: string, delayMs: number, callback: () => void): void {
    if (this.#cancels.has(purpose)) return;
    const cancel = this.#clock.after(delayMs, () => {
      this.#cancels.delete(purpose);
      callback();
    });
    this.#cancels.set(purpose, cancel);
  }

  cancel(purpose: string): void {
    this.#cancels.get(purpose)?.();
    this.#cancels.delete(purpose);
  }

  cancelAll(): void {
    for (const purpose of this.#cancels.keys()) this.cancel(purpose);
  }
}
