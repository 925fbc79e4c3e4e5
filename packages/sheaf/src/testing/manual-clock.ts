import type { Clock } from "../core/runtime/runtime.ts";
import { afterMicrotasks } from "./microtasks.ts";
import { TimerQueue } from "./timer-queue.ts";

/** @see manualClock */
export interface ManualClock extends Clock {
  /** Fires the timers due in the next `ms`, in order, each at its moment. Promises get no turn in between. */
  advance(ms: number): void;
  advanceTo(atMs: number): void;
  /** As `advance`, with every promise settled before, between and after the timers. */
  advanceAsync(ms: number): Promise<void>;
  advanceToAsync(atMs: number): Promise<void>;
  /** Settles every promise and fires every timer due now, until neither is left. */
  settle(): Promise<void>;
  /** When the next timer is due; `Infinity` without one. */
  nextAtMs(): number;
  /** Timers set and neither fired nor cancelled. */
  readonly pending: number;
}

/** A clock stepped by hand, for tests: time stands still until it is advanced. */
export function manualClock({
  startAtMs = 0,
}: {
  /**
   * Milliseconds that it shows first.
   * @default 0
   */
  readonly startAtMs?: number | undefined;
} = {}): ManualClock {
  return new SteppedClock(startAtMs);
}

class SteppedClock implements ManualClock {
  #nowMs: number;
  readonly #timers = new TimerQueue();

  constructor(startAtMs: number) {
    this.#nowMs = startAtMs;
  }

  readonly now = (): number => this.#nowMs;

  readonly after = (delayMs: number, callback: () => void): (() => void) =>
    this.#timers.set(this.#nowMs + Math.max(0, delayMs), callback);

  readonly advance = (ms: number): void => this.advanceTo(this.#nowMs + ms);

  readonly advanceTo = (atMs: number): void => {
    this.#forward(atMs);
    while (this.#fireNext(atMs));
    this.#nowMs = atMs;
  };

  readonly advanceAsync = (ms: number): Promise<void> => this.advanceToAsync(this.#nowMs + ms);

  readonly advanceToAsync = async (atMs: number): Promise<void> => {
    this.#forward(atMs);
    do await settled();
    while (this.#fireNext(atMs));
    this.#nowMs = atMs;
  };

  readonly settle = (): Promise<void> => this.advanceToAsync(this.#nowMs);

  readonly nextAtMs = (): number => this.#timers.nextAtMs();

  get pending(): number {
    return this.#timers.size;
  }

  #fireNext(endAtMs: number): boolean {
    const nextAtMs = this.#timers.nextAtMs();
    if (nextAtMs > endAtMs) return false;
    this.#nowMs = Math.max(this.#nowMs, nextAtMs);
    this.#timers.fire();
    return true;
  }

  #forward(atMs: number): void {
    if (!(atMs >= this.#nowMs && atMs < Infinity)) {
      throw new RangeError(`A clock only moves forward: it is at ${this.#nowMs} ms, got ${atMs}`);
    }
  }
}

const settled = (): Promise<void> => new Promise((resolve) => afterMicrotasks(resolve));
