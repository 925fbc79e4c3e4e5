// A model that takes 0.8 + 0.075 n ms of CPU for n items.
import { defineWorker } from "sheaf/node";

export default defineWorker({
  run(items) {
    const endAtMs = performance.now() + 0.8 + 0.075 * items.length;
    while (performance.now() < endAtMs);
    return items;
  },
});
