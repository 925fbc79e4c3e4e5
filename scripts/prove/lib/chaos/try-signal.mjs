/** Sends a process a signal; one that ended a moment ago is not an error. */
export function trySignal(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch {
    // It is gone.
  }
}
