import { defineWorker, type WorkerDefinition } from "sheaf/node";

/** Run time of the demo's worker, in milliseconds: about that of a small network on a GPU. */
export const demoCost = { fixedMs: 10, perItemMs: 0.3 } as const;

export const poison = -1;

/** Waits as long as a batch would take; a batch with a poison item fails whole, as a bad row fails a whole tensor. */
const worker: WorkerDefinition<number, number> = defineWorker({
  async run(items: number[]) {
    await new Promise((resolve) => setTimeout(resolve, demoCost.fixedMs + demoCost.perItemMs * items.length));
    if (items.includes(poison)) throw new Error("the batch holds an item that cannot be run");
    return items;
  },
});
export default worker;
