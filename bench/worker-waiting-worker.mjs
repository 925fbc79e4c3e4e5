// A model that waits 10 + 0.2 n ms for n items, as one on a GPU or behind a network does.
import { setTimeout as sleep } from "node:timers/promises";
import { defineWorker } from "sheaf/node";

export default defineWorker({
  async run(items) {
    await sleep(10 + 0.2 * items.length);
    return items;
  },
});
