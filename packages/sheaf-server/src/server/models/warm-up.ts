import { runHandle, type Executor, type RunTime } from "sheaf/executors";
import { doubling } from "../../shared/doubling.ts";

/**
 * Runs batches of sizes 1, 2, 4 … maxBatchSize in turn, `batches` of them on every slot at once. Straight on the
 * executor: the run times of a cold model must not teach the scheduler.
 * @returns the run times, without the first of each size on each slot.
 */
export async function warmUp(
  executor: Executor<unknown, unknown>,
  item: unknown,
  { batches, maxBatchSize }: { readonly batches: number; readonly maxBatchSize: number },
): Promise<RunTime[]> {
  const runTimes: RunTime[] = [];
  const sizes = doubling(1, maxBatchSize);
  for (let batch = 0; batch < batches; batch++) {
    const size = sizes[batch % sizes.length]!;
    const runs = Array.from({ length: executor.slots }, async (_, slot) => {
      const handle = runHandle({ batchId: -1 - slot, size });
      const startedAtMs = performance.now();
      const results = await executor.run(new Array<unknown>(size).fill(item), handle);
      if (batch >= sizes.length) runTimes.push({ size, runMs: handle.runMs ?? performance.now() - startedAtMs });
      return results;
    });
    for (const results of await Promise.all(runs)) {
      const failure = Array.from(results).find((result) => result instanceof Error);
      if (failure !== undefined) throw new Error(`Warm-up failed: ${failure.message}`, { cause: failure });
    }
  }
  return runTimes;
}
