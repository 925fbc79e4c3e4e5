import { wrapExecutor, type WorkerDeclaration, type WorkerExecutor } from "sheaf/node";
import { fromWorker, toWorker } from "./columns.ts";

/** A worker's executor that takes and gives what the server has. */
export function convertingExecutor(
  inner: WorkerExecutor<never, unknown>,
  declaration: WorkerDeclaration,
): WorkerExecutor<never, unknown> {
  const [into, from] = [toWorker(declaration), fromWorker(declaration)];
  const run = async (items: never[], ...rest: [Parameters<typeof inner.run>[1]]): Promise<ArrayLike<unknown>> => {
    const results = await inner.run(items.map(into) as never[], ...rest);
    return Array.from(results, (result) => (result instanceof Error ? result : from(result)));
  };
  return {
    ...wrapExecutor<never, unknown>(inner, { run }),
    instances: () => inner.instances(),
    onInstance: (listener) => inner.onInstance(listener),
    get restarts() {
      return inner.restarts;
    },
  };
}
