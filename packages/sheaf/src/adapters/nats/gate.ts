import type { Executor } from "../../core/executor.ts";

/** Counts what runs on an executor, so that a feed knows how much to take. Put the executor in it before the batcher. */
export class BatchGate {
  runningBatches = 0;
  runningItems = 0;
  /** Called after each change. */
  changed: () => void = () => undefined;

  around<In, Out>(executor: Executor<In, Out>): Executor<In, Out> {
    return {
      slots: executor.slots,
      ahead: executor.ahead,
      reportsStart: executor.reportsStart,
      ready: () => executor.ready(),
      run: async (items, context) => {
        const { length } = items;
        this.#count(1, length);
        try {
          return await executor.run(items, context);
        } finally {
          this.#count(-1, -length);
        }
      },
      close: () => executor.close(),
    };
  }

  #count(batches: number, items: number): void {
    this.runningBatches += batches;
    this.runningItems += items;
    this.changed();
  }
}
