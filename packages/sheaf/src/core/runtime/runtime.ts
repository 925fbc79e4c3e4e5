/** The source of time. Inject one for tests and simulations (`sheaf/testing` has two). */
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

/**
 * The few globals the core uses, declared by hand: it compiles without the types of any runtime, so that a `node:` or
 * DOM type cannot slip in. Everything else reaches time through `Clock`.
 */
declare const performance: { now(): number };
declare function setTimeout(callback: () => void, delayMs: number): unknown;
declare function clearTimeout(timer: unknown): void;
declare const setImmediate: ((callback: () => void) => unknown) | undefined;
declare const clearImmediate: (immediate: unknown) => void;
declare const navigator: { readonly userAgent?: string } | undefined;

/** Where moments and timers come from: the runtime, or a test's fake timers. */
interface TimeSource {
  readonly setTimeout: typeof setTimeout;
  readonly clearTimeout: typeof clearTimeout;
  readonly now: () => number;
  /** Added to `now()`, so that time goes on where the last source stood. */
  readonly offsetMs: number;
  /** The latest moment that a timer of fake timers has reached: `node:test` fakes timers, but not `performance`. */
  reachedAtMs: number;
}

// Kept: in Node the global is a getter, which would take as long as the clock itself.
const timerAtImport = performance;

// A source keeps the method too: fake timers may replace it in place.
function timeSource(lastAtMs?: number): TimeSource {
  const timer = performance;
  const read = timer.now;
  const now = (): number => read.call(timer);
  const offsetMs = lastAtMs === undefined ? 0 : lastAtMs - now();
  return { setTimeout, clearTimeout, now, offsetMs, reachedAtMs: lastAtMs ?? -Infinity };
}

const sourceAtImport = timeSource();
let source = sourceAtImport;
const setTimeoutAtImport = setTimeout;
const clearTimeoutAtImport = clearTimeout;
const setImmediateAtImport = typeof setImmediate === "function" ? setImmediate : undefined;
const clearImmediateAtImport = setImmediateAtImport && clearImmediate;

/** Whether a test has replaced the timers since this module was imported. */
export const hasFakeTimers = (): boolean => setTimeout !== setTimeoutAtImport;

/** Milliseconds from a fixed origin. Fake timers that a test turns on or off take over where time stands. */
export function monotonicNow(): number {
  if (source === sourceAtImport && setTimeout === setTimeoutAtImport) return timerAtImport.now();
  if (setTimeout !== source.setTimeout) source = timeSource(nowOf(source));
  return nowOf(source);
}

const nowOf = ({ now, offsetMs, reachedAtMs }: TimeSource): number => Math.max(now() + offsetMs, reachedAtMs);

// The longest delay a timer of any runtime takes; a longer one would fire at once.
const longestDelayMs = 2_147_483_647;

export function startTimer(callback: () => void, delayMs: number): () => void {
  if (!hasFakeTimers()) {
    const timer = setTimeoutAtImport(callback, Math.min(delayMs, longestDelayMs));
    return () => clearTimeoutAtImport(timer);
  }
  // Whole microseconds, and one more counts as reached: a difference of moments may be rounded up beyond the time that a
  // test lets pass, or down below the moment that it stands for.
  const wholeMs = Math.round(delayMs * 1000) / 1000;
  const dueAtMs = monotonicNow() + wholeMs + 0.001;
  const armed = source;
  const reached = (): void => {
    armed.reachedAtMs = Math.max(armed.reachedAtMs, dueAtMs);
    callback();
  };
  const timer = armed.setTimeout(reached, Math.min(wholeMs, longestDelayMs));
  return () => armed.clearTimeout(timer);
}

/**
 * After the callbacks that are due now: items that arrive in the same turn of the event loop can share a batch. The end of
 * a turn is no matter of time, so fake timers do not hold it up.
 */
export function setImmediateOrSoon(callback: () => void): () => void {
  if (setImmediateAtImport === undefined) {
    const timer = setTimeoutAtImport(callback, 0);
    return () => clearTimeoutAtImport(timer);
  }
  const immediate = setImmediateAtImport(callback);
  return () => clearImmediateAtImport!(immediate);
}

/** Whether this is Cloudflare's workerd: it drops the timers and continuations of a request that has ended. */
export const isBoundToRequests = (): boolean =>
  typeof navigator === "object" && navigator.userAgent === "Cloudflare-Workers";
