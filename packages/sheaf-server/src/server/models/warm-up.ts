import type { Executor } from "sheaf";
import { gainAtStart, type RunTime } from "sheaf/internal";
import { runHandle } from "sheaf/executors";
import { doubling } from "../../shared/doubling.ts";

/** How long single items and the largest size are compared: usually, if run times scatter, and if a run takes long. */
const comparedMs = 300;
const scatteredMs = 2000;
const longestMs = 3000;
const fewestRounds = 3;
/** A model that takes microseconds is known well long before the time is over. */
const mostCompared = 2000;

/**
 * Runs batches of sizes 1, 2, 4 … maxBatchSize in turn, `batches` of each on every slot at once. Then it alternates single items with
 * runs of the largest size, which shows before the first request what batches gain. It bypasses the scheduler, which must not learn
 * from the run times of a cold model.
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
  await compare(run, largest, runTimes);
  return runTimes;
}

/**
 * Runs single items for about as long as the run of the `largest` size that follows, so that both sides see the same share of other
 * load.
 */
async function compare(
  run: (size: number, isCounted: boolean) => Promise<void>,
  largest: number,
  runTimes: readonly RunTime[],
): Promise<void> {
  const startedAtMs = performance.now();
  const elapsedMs = (): number => performance.now() - startedAtMs;
  const enough = runTimes.length + mostCompared;
  let togetherMs = 0;
  for (let round = 0; round < fewestRounds || !isSettled(runTimes, elapsedMs()); round++) {
    if (elapsedMs() > longestMs || runTimes.length >= enough) return;
    const roundAtMs = elapsedMs();
    for (let items = 0; items < largest && (items === 0 || elapsedMs() - roundAtMs < togetherMs); items++)
      await run(1, true);
    const largestAtMs = elapsedMs();
    await run(largest, true);
    togetherMs = elapsedMs() - largestAtMs;
  }
}

function isSettled(runTimes: readonly RunTime[], elapsedMs: number): boolean {
  if (elapsedMs < comparedMs) return false;
  const gain = gainAtStart(runTimes);
  return elapsedMs > scatteredMs || (gain !== null && gain.high < 1.5 * gain.low);
}
