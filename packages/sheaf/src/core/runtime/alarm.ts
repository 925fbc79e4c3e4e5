import { shortestTimerMs, type Clock } from "./clock.ts";

/** One timer on a clock. */
export class Alarm {
  /** When it rings; `Infinity` while it is off. */
  atMs: number = Infinity;
  readonly #clock: Clock;
  readonly #ring: (nowMs: number) => void;
  #cancel: () => void = () => undefined;

  constructor(clock: Clock, ring: (nowMs: number) => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Rings at that moment and at no earlier one; `Infinity` turns it off. */
  set(atMs: number): void {
    if (atMs === this.atMs) return;
    this.#cancel();
    this.atMs = atMs;
    if (atMs === Infinity) return;
    this.#cancel = this.#clock.after(Math.max(shortestTimerMs, atMs - this.#clock.now()), () => {
      this.atMs = Infinity;
      this.#ring(this.#clock.now());
    });
  }
}
