import { getPriority, setPriority } from "node:os";

const lowestPriority = 19;

/**
 * Gives a process, or this thread (`pid` 0), a priority that is lower than this one's by `niceness`. On Linux a thread has a
 * priority of its own; elsewhere this would slow the whole process, so the niceness of threads is 0 there.
 */
export function lowerPriority(pid: number | undefined, niceness: number): void {
  if (pid === undefined || niceness === 0) return;
  try {
    setPriority(pid, Math.min(lowestPriority, getPriority() + niceness));
  } catch {
    // Not permitted in some sandboxes, or the process has ended; a worker then competes on equal terms.
  }
}
