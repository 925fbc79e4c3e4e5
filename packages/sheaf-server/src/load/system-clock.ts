import { performance } from "node:perf_hooks";
import type { Clock } from "sheaf";

export const systemClock: Clock = {
  now: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};
