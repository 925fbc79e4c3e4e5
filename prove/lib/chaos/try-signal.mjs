/** Sends a process a signal; one that ended a moment ago is no error. */
export function trySignal(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch {
    // It is gone.
  }
}
