/**
 * Calls back when no microtask is left, however long the chains of promises are. In Node that is exact and cheap: a
 * tick queued from inside a microtask runs after the whole microtask queue. Elsewhere it takes a turn of the event loop.
 */
export const afterMicrotasks: (callback: () => void) => void =
  typeof globalThis.process?.nextTick === "function"
    ? (callback) => queueMicrotask(() => process.nextTick(callback))
    : (callback) => nextTurn(callback);

/** Calls back in the next turn of the event loop, so that sockets, real timers and signals are served in between. */
export const nextTurn: (callback: () => void) => void =
  typeof setImmediate === "function"
    ? (callback) => void setImmediate(callback)
    : typeof MessageChannel === "function"
      ? turnsByMessage()
      : (callback) => void setTimeout(callback, 0);

/** A browser makes nested timers wait for 4 ms each, and a message some microseconds. */
function turnsByMessage(): (callback: () => void) => void {
  const { port1, port2 } = new MessageChannel();
  const waiting: (() => void)[] = [];
  port1.addEventListener("message", () => waiting.shift()!());
  port1.start();
  return (callback) => {
    waiting.push(callback);
    port2.postMessage(undefined);
  };
}
