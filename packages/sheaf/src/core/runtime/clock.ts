import { hasFakeTimers, monotonicNow, setImmediateOrSoon, startTimer } from "./globals.ts";

/** Where time enters. Inject another one for tests and simulations (`sheaf/tuning` has two). */
export interface Clock {
  /** Milliseconds from any fixed origin; never goes back. */
  now(): number;
  /**
   * Calls back once, `delayMs` from now or a little later; 0 means at the end of this turn of the event loop, after the
   * callbacks that are already due. Returns a function that cancels it.
   */
  after(delayMs: number, callback: () => void): () => void;
}

/** A timer shorter than this could come back before its moment by rounding alone, forever. */
export const shortestTimerMs = 0.001;

/**
 * The real clock of this runtime. Its timers take at least 1.1 ms, whatever they are asked for: a shorter delay looks at
 * the clock at the end of each turn of the event loop instead, which keeps a hold of a fraction of a millisecond short.
 */
export const systemClock: Clock = {
  now: monotonicNow,
  after: (delayMs, callback) => {
    if (delayMs >= 1 || (delayMs > 0 && hasFakeTimers())) return startTimer(callback, delayMs);
    return delayMs > 0 ? poll(monotonicNow() + delayMs, callback) : setImmediateOrSoon(callback);
  },
};

function poll(dueAtMs: number, callback: () => void): () => void {
  let cancel: () => void;
  const look = (): void => {
    cancel = setImmediateOrSoon(() => (monotonicNow() >= dueAtMs ? callback() : look()));
  };
  look();
  return () => cancel();
}

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

/** Waits until `done` settles, either way, but no longer than `ms`. @returns whether it settled in time. */
export async function within(
  done: Promise<unknown> | undefined,
  ms: number,
  clock: Clock = systemClock,
): Promise<boolean> {
  let cancel = (): void => undefined;
  const late = new Promise<boolean>((resolve) => (cancel = clock.after(ms, () => resolve(false))));
  const settled = (): boolean => true;
  const inTime = Promise.resolve(done).then(settled, settled);
  return Promise.race([inTime, late]).finally(() => cancel());
}
