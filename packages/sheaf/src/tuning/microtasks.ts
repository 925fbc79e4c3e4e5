/**
 * Calls back when no microtask is left, however long the chains of promises are. In Node that is exact and cheap: a
 * tick queued from inside a microtask runs after the whole microtask queue. Elsewhere it takes a turn of the event loop.
 */
export const afterMicrotasks: (callback: () => void) => void =
  typeof globalThis.process?.nextTick === "function"
    ? (callback) => queueMicrotask(() => process.nextTick(callback))
    : (callback) => nextTurn(callback);

/** Calls back in the next turn of the event loop, so that sockets, real timers and signals are served in between. */
export const nextTurn = (callback: () => void): void => {
  if (typeof setImmediate === "function") setImmediate(callback);
  else setTimeout(callback, 0);
};
