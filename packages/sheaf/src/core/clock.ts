import { monotonicNow, setImmediateOrSoon, startTimer } from "./runtime.ts";

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

/** The real clock of this runtime. */
export const systemClock: Clock = {
  now: monotonicNow,
  after: (delayMs, callback) => (delayMs > 0 ? startTimer(callback, delayMs) : setImmediateOrSoon(callback)),
};
