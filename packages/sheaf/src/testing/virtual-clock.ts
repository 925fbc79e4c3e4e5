import type { Clock } from "../core/runtime/runtime.ts";
import { afterMicrotasks, nextTurn } from "./microtasks.ts";
import { TimerQueue } from "./timer-queue.ts";

/** @see virtualClock */
export interface VirtualClock extends Clock {
  /** As `after`, at a moment instead of in a while: exact where `now() + delayMs` would round. */
  at(atMs: number, callback: () => void): () => void;
  /** Resolves `delayMs` of virtual time from now: the run time of a simulated batch. */
  sleep(delayMs: number): Promise<void>;
  /** Resolves when no timer is left. */
  idle(): Promise<void>;
  /** Timers fired so far. */
  readonly events: number;
}

/**
 * A clock that jumps: whenever the program has nothing left to do, it goes on to the next timer at once, so that an hour
 * passes in milliseconds. Between two timers every chain of promises runs to its end, so the same program does the same
 * at every run. It knows of nothing but its own timers and promises: code under it must not wait for real input or time.
 */
export function virtualClock({
  startAtMs = 0,
}: {
  /**
   * Milliseconds that it shows first.
   * @default 0
   */
  readonly startAtMs?: number | undefined;
} = {}): VirtualClock {
  return new JumpingClock(startAtMs);
}

class JumpingClock implements VirtualClock {
  events = 0;
  #nowMs: number;
  readonly #timers = new TimerQueue();
  #running = false;
  #onIdle: (() => void)[] = [];

  constructor(startAtMs: number) {
    this.#nowMs = startAtMs;
  }

  // Bound, as a batcher keeps the functions and a caller may destructure them.
  readonly now = (): number => this.#nowMs;

  readonly after = (delayMs: number, callback: () => void): (() => void) =>
    this.at(this.#nowMs + Math.max(0, delayMs), callback);

  readonly at = (atMs: number, callback: () => void): (() => void) => {
    if (Number.isNaN(atMs)) throw new RangeError("The time of a timer must be a number of milliseconds, got NaN");
    const cancel = this.#timers.set(Math.max(atMs, this.#nowMs), callback);
    this.#start();
    return cancel;
  };

  readonly sleep = (delayMs: number): Promise<void> => new Promise((resolve) => void this.after(delayMs, resolve));

  readonly idle = (): Promise<void> =>
    new Promise((resolve) => {
      this.#onIdle.push(resolve);
      this.#start();
    });

  #start(): void {
    if (this.#running) return;
    this.#running = true;
    afterMicrotasks(this.#step);
  }

  readonly #step = (): void => {
    const nextAtMs = this.#timers.nextAtMs();
    if (nextAtMs === Infinity) {
      this.#running = false;
      const waiting = this.#onIdle;
      this.#onIdle = [];
      for (const resolve of waiting) resolve();
      return;
    }
    this.#nowMs = nextAtMs;
    // Queued before the timer fires: one that throws must not stop the clock. The event loop gets a turn now and then.
    if (++this.events % turnEvery === 0) nextTurn(() => afterMicrotasks(this.#step));
    else afterMicrotasks(this.#step);
    this.#timers.fire();
  };
}

const turnEvery = 1024;
