/**
 * The few globals the core uses, declared by hand: it compiles without the types of any runtime, so that a `node:` or
 * DOM type cannot slip in. Everything else reaches time through `Clock`.
 */
declare global {
  // Merges with the runtime's own declaration and gives the name a meaning where a runtime's types are absent.
  interface AbortSignal {}
}

/** The part of an AbortSignal that the core uses. */
export interface AbortSignalLike {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

declare const performance: { now(): number };
declare function setTimeout(callback: () => void, delayMs: number): unknown;
declare function clearTimeout(timer: unknown): void;
declare const setImmediate: ((callback: () => void) => unknown) | undefined;
declare const clearImmediate: (immediate: unknown) => void;
declare const AbortController: new () => { readonly signal: AbortSignal; abort(reason?: unknown): void };
declare const process: { cpuUsage?(): { readonly user: number; readonly system: number } } | undefined;
declare const navigator: { readonly userAgent?: string } | undefined;
declare const console: { warn(message: string, ...more: unknown[]): void };

// Kept: in Node the global is a getter, which would take as long as the clock itself.
const timer = performance;
export const monotonicNow = (): number => timer.now();

// The longest delay a timer of any runtime takes; a longer one would fire at once.
const longestDelayMs = 2_147_483_647;

export function startTimer(callback: () => void, delayMs: number): () => void {
  const timer = setTimeout(callback, Math.min(delayMs, longestDelayMs));
  return () => clearTimeout(timer);
}

/** After the callbacks that are due now: items that arrive in the same turn of the event loop can share a batch. */
export function setImmediateOrSoon(callback: () => void): () => void {
  if (typeof setImmediate !== "function") return startTimer(callback, 0);
  const immediate = setImmediate(callback);
  return () => clearImmediate(immediate);
}

export const newAbortController = (): { readonly signal: AbortSignal; abort(reason?: unknown): void } =>
  new AbortController();

/** CPU time of the process so far, all its threads together, in milliseconds; undefined where the runtime keeps none. */
export function processCpuMs(): number | undefined {
  const used = typeof process === "object" ? process.cpuUsage?.() : undefined;
  return used && (used.user + used.system) / 1000;
}

/** Whether this is Cloudflare's workerd: it drops the timers and continuations of a request that has ended. */
export const isBoundToRequests = (): boolean =>
  typeof navigator === "object" && navigator.userAgent === "Cloudflare-Workers";

export const warn = (message: string, ...more: unknown[]): void => console.warn(message, ...more);

/** A `warn` that prints its first message and no other. */
export function warnOnce(): typeof warn {
  let hasWarned = false;
  return (...words) => {
    if (!hasWarned) warn(...words);
    hasWarned = true;
  };
}
