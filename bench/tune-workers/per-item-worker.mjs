import { defineWorker } from "../../packages/sheaf/dist/node/index.js";

export const sample = 1;

/** Works, without sleeping, a millisecond an item. */
export default defineWorker({
  run(items) {
    const untilMs = performance.now() + items.length;
    while (performance.now() < untilMs);
    return items;
  },
});
