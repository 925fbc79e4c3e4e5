import { createBatcher, greedy, type Batcher, type BatcherOptions } from "sheaf";
import { wrapExecutor } from "sheaf/executors";
import { workerProcess } from "sheaf/node";
import { calibrate, type Calibration } from "sheaf/tuning";
import { adviseOn, type Advice } from "../tune/advice.ts";
import { batcherTarget } from "../batcher-target.ts";
import type worker from "./demo-worker.ts";
import { poison } from "./demo-worker.ts";
import { runLoad, type LoadProgress } from "../generator.ts";
import type { LoadResult } from "../result.ts";
import { systemClock } from "../system-clock.ts";

export interface DemoOptions {
  /** The whole demo, more or less. */
  readonly durationMs: number;
  readonly onStep: (label: string) => void;
  readonly onProgress: (share: number) => void;
  readonly signal?: AbortSignal | undefined;
}

/** The demo's figures; every one is measured, none is set. */
export interface DemoResult {
  /** The same ramp, one by one and batched. */
  readonly ramp: { readonly unbatched: LoadResult; readonly batched: LoadResult };
  readonly burst: LoadResult;
  readonly poison: { readonly calls: number; readonly failed: number; readonly bisectRuns: number };
  /** Steady load while the worker process is killed in the middle. */
  readonly killed: { readonly load: LoadResult; readonly pid: number; readonly restarts: number };
  readonly calibration: Calibration;
  readonly advice: Advice;
}

const rampPerS = 300;
const burstPerS = 300;
const steadyPerS = 200;
const extension = import.meta.url.endsWith(".ts") ? ".ts" : ".js";

/** Runs the acts one after the other, on a real batcher and a real worker process; always ends both. */
export async function runDemo(options: DemoOptions): Promise<DemoResult> {
  const { durationMs, signal } = options;
  const executor = workerProcess<typeof worker>(new URL(`./demo-worker${extension}`, import.meta.url), { prefetch: 0 });
  // Only the last batcher owns the worker: closing the others must not end it.
  const shared = wrapExecutor<number, number>(executor, {
    run: (items, handle) => executor.run(items, handle),
    close: () => Promise.resolve(),
  });
  const batcher = (name: string, own: BatcherOptions<number, number> = {}): Batcher<number, number> =>
    createBatcher<number, number>(shared, { name, maxBatchSize: 32, maxQueueSize: 1000, timeoutMs: 3000, ...own });
  try {
    await executor.ready();
    const act = async (name: string, target: Batcher<number, number>, load: ActLoad): Promise<LoadResult> => {
      const result = await runLoad({
        configuration: name,
        target: batcherTarget(target, (index) => index),
        clock: systemClock,
        timeoutMs: 4000,
        onProgress: ({ elapsedMs, totalMs }: LoadProgress) => options.onProgress(elapsedMs / totalMs),
        signal,
        ...load,
      });
      await target.close({ graceMs: 0 });
      return result;
    };
    const ramp: ActLoad = { pattern: "ramp", ratePerS: rampPerS, durationMs: 0.2 * durationMs };
    options.onStep(`Ramp from 0 to ${2 * rampPerS} calls/s, one by one`);
    const unbatched = await act("one by one", batcher("one-by-one", { maxBatchSize: 1, policy: greedy() }), ramp);
    options.onStep("The same ramp, batched");
    const batched = await act("batched", batcher("batched"), ramp);
    options.onStep(`Bursts of ${3 * burstPerS} calls/s, batched`);
    const bursts: ActLoad = { pattern: "burst", ratePerS: burstPerS, durationMs: 0.15 * durationMs };
    const burst = await act("batched", batcher("burst"), bursts);

    options.onStep("One poison item among 64");
    const poisoned = await poisonAct(batcher("poison", { onBatchError: "bisect" }));

    options.onStep("Steady load; the worker is killed in the middle");
    const steady: ActLoad = { pattern: "steady", ratePerS: steadyPerS, durationMs: 0.15 * durationMs };
    const { pid } = executor.instances()[0]!;
    const timer = setTimeout(() => process.kill(pid!, "SIGKILL"), steady.durationMs / 2);
    // Long enough for a new process on a slow machine: the act shows that no call is lost, not how long one waits.
    const patient = batcher("killed", { timeoutMs: 30_000 });
    const load = await act("batched", patient, { ...steady, timeoutMs: 31_000 }).finally(() => clearTimeout(timer));

    options.onStep("Measuring the cost of batches");
    const calibration = await calibrate(executor, {
      sample: (index) => index,
      maxMs: 0.1 * durationMs,
      onProgress: ({ share }) => options.onProgress(share),
      signal,
    });
    return {
      ramp: { unbatched, batched },
      burst,
      poison: poisoned,
      killed: { load, pid: pid!, restarts: executor.restarts },
      calibration,
      advice: adviseOn(calibration.costModel, { ratePerS: rampPerS }),
    };
  } finally {
    await executor.close();
  }
}

interface ActLoad {
  readonly pattern: "ramp" | "burst" | "steady";
  readonly ratePerS: number;
  readonly durationMs: number;
  readonly timeoutMs?: number;
}

async function poisonAct(batcher: Batcher<number, number>): Promise<DemoResult["poison"]> {
  const items = Array.from({ length: 64 }, (_, i) => (i === 37 ? poison : i));
  const results = await batcher.settle(items);
  const failed = results.filter(({ status }) => status === "rejected").length;
  const { bisectRuns } = batcher.stats();
  await batcher.close();
  return { calls: items.length, failed, bisectRuns };
}
