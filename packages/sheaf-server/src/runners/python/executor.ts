import { wrapExecutor } from "sheaf/executors";
import type { WorkerDeclaration, WorkerExecutor } from "sheaf/node";
import { fromWorker, toWorker } from "./columns.ts";

/** A worker's executor that takes the server's items and gives the server's results. */
export function convertingExecutor(
  inner: WorkerExecutor<never, unknown>,
  declaration: WorkerDeclaration,
): WorkerExecutor<never, unknown> {
  const [into, from] = [toWorker(declaration), fromWorker(declaration)];
  // Texts, JSON and flat floats are the same on both sides.
  if (into === undefined && from === undefined) return inner;
  const wrapped = wrapExecutor<never, unknown>(inner, {
    async run(items, handle) {
      const results = await inner.run(into === undefined ? items : (items.map(into) as never[]), handle);
      if (from === undefined) return results;
      return Array.from(results, (result) => (result instanceof Error ? result : from(result)));
    },
  });
  return {
    ...wrapped,
    instances: () => inner.instances(),
    onInstance: (listener) => inner.onInstance(listener),
    get restarts() {
      return inner.restarts;
    },
    get outage() {
      return inner.outage;
    },
  };
}
