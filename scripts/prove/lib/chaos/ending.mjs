const signals = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGTERM: 15 };

/**
 * Says on stderr every minute how far the proof is, and why it ends where it ends before it is done: a signal, an error
 * that was not caught, or nothing left to wait for. Gives the function to call when it is done.
 */
export function announceEnd(seconds) {
  const startedAtMs = performance.now();
  const elapsed = () => `${Math.round((performance.now() - startedAtMs) / 1000)} of ${Math.round(seconds)} s`;
  let reason = "nothing was left to wait for";
  let isDone = false;
  const minutes = setInterval(() => console.error(`… ${elapsed()}`), 60_000).unref();
  const endWith = (why, status) => {
    reason = why;
    process.exit(status);
  };
  for (const [signal, number] of Object.entries(signals)) {
    process.once(signal, () => endWith(`somebody sent it ${signal}`, 128 + number));
  }
  process.on("uncaughtException", (error, origin) => endWith(`${origin}: ${error?.stack ?? error}`, 1));
  process.on("exit", (status) => {
    if (!isDone) console.error(`✖ Ended early, after ${elapsed()}, with status ${status}: ${reason}.`);
  });
  return () => {
    isDone = true;
    clearInterval(minutes);
  };
}
