import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { defineWorker } from "../../packages/sheaf/dist/node/index.js";

/** An edited copy of this file says another one. */
const version = 1;

/** Where the numbers of the items of each run are noted, before it begins. */
const { RUNS_FILE } = process.env;

const [fixedMs, perItemMs] = (process.env.RUN_MS ?? "5 0.2").split(" ").map(Number);

/** No request has this number: runs of it are the warm-up's. */
export const sample = { id: -1 };

/**
 * Takes 5 + 0.2 n ms (or as RUN_MS says), without a processor, as a model on an accelerator would. An item may be poison: `process` ends the
 * process that the model is in, at once and silently; `pad` bytes make an item, and its echo, large.
 */
export default defineWorker({
  async run(items) {
    if (RUNS_FILE !== undefined) appendFileSync(RUNS_FILE, items.map(({ id }) => `${id}\n`).join(""));
    if (items.some(({ poison }) => poison === "process")) process.kill(process.pid, "SIGKILL");
    await sleep(fixedMs + perItemMs * items.length);
    return items.map(({ id }) => ({ id, twice: 2 * id, version }));
  },
});
