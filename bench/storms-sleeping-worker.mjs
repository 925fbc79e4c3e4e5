import { defineWorker } from "../packages/sheaf/dist/node/index.js";

/** A model that sleeps: 40 ms a run and 1.2 ms an item. Its vectors say nothing. */
export default defineWorker({
  load: () => undefined,
  run: async (items) => {
    await new Promise((resolve) => setTimeout(resolve, 40 + 1.2 * items.length));
    return items.map(() => Float32Array.of(1, 2, 3));
  },
});
