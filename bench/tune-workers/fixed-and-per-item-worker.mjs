import { defineWorker } from "../../packages/sheaf/dist/node/index.js";

export const sample = 1;

/** Takes 10 + 0.3 n ms to the microsecond: a timer to a millisecond before the end, then a short spin. */
export default defineWorker({
  async run(items) {
    const untilMs = performance.now() + 10 + 0.3 * items.length;
    await new Promise((resolve) => setTimeout(resolve, Math.floor(untilMs - performance.now()) - 1));
    while (performance.now() < untilMs);
    return items;
  },
});
