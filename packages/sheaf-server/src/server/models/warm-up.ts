import { runHandle, type Executor, type RunTime } from "sheaf/executors";
import { doubling } from "../../shared/doubling.ts";

/** How long one item and the largest size are compared, and how often at least and at most. */
const comparedMs = 300;
const fewestRounds = 3;
const mostRounds = 50;

/**
 * Runs batches of sizes 1, 2, 4 … maxBatchSize in turn, `batches` of them on every slot at once; then one item and the largest of
 * those sizes in turn, for 300 ms or three times, which shows what batches gain before the first request. Straight on the
 * executor: the run times of a cold model must not teach the scheduler.
 * @returns the run times, without the first of each size on each slot.
 */
export async function warmUp(
  executor: Executor<unknown, unknown>,
  item: unknown,
  { batches, maxBatchSize }: { readonly batches: number; readonly maxBatchSize: number },
): Promise<RunTime[]> {
  const runTimes: RunTime[] = [];
  const run = async (size: number, isCounted: boolean): Promise<void> => {
    const runs = Array.from({ length: executor.slots }, async (_, slot) => {
      const handle = runHandle({ batchId: -1 - slot, size });
      const startedAtMs = performance.now();
      const results = await executor.run(new Array<unknown>(size).fill(item), handle);
      if (isCounted) runTimes.push({ size, runMs: handle.runMs ?? performance.now() - startedAtMs });
      return results;
    });
    for (const results of await Promise.all(runs)) {
      const failure = Array.from(results).find((result) => result instanceof Error);
      if (failure !== undefined) throw new Error(`Warm-up failed: ${failure.message}`, { cause: failure });
    }
  };
  const sizes = doubling(1, maxBatchSize);
  for (let batch = 0; batch < batches; batch++) await run(sizes[batch % sizes.length]!, batch >= sizes.length);
  const largest = sizes[Math.min(batches, sizes.length) - 1] ?? 1;
  if (largest === 1) return runTimes;
  const startedAtMs = performance.now();
  for (let round = 0; round < mostRounds; round++) {
    if (round >= fewestRounds && performance.now() - startedAtMs > comparedMs) break;
    await run(1, true);
    await run(largest, true);
  }
  return runTimes;
}
