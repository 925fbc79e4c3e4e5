import { afterEach } from "node:test";
import { createBatcher, type Batcher, type BatcherOptions } from "../../dist/index.js";
import { workerProcess, workerThread, type WorkerExecutor, type WorkerOptions } from "../../dist/node/index.js";
import type { Command, ProbeData } from "./probe-worker.js";
import type probe from "./probe-worker.js";

const open: Pick<Batcher<never, unknown>, "close">[] = [];
afterEach(async () => {
  for (const batcher of open.splice(0)) await batcher.close();
});

/** As `createBatcher`; the batcher is closed after the test. */
export const openBatcher = ((...made: Parameters<typeof createBatcher>) => {
  const batcher = createBatcher(...made);
  open.push(batcher);
  return batcher;
}) as typeof createBatcher;

export const probeUrl = new URL("./probe-worker.js", import.meta.url);

export interface Setup {
  readonly executor: WorkerExecutor<Command, string | number>;
  readonly call: Batcher<Command, string | number>;
}

export const kinds = { thread: workerThread<typeof probe>, process: workerProcess<typeof probe> } as const;
export type KindOfWorker = keyof typeof kinds;

export async function setUp(
  kind: KindOfWorker,
  options: WorkerOptions<ProbeData | undefined> = {},
  batching: BatcherOptions<Command, string | number> = {},
): Promise<Setup> {
  const executor = kinds[kind](probeUrl, options);
  const call = openBatcher(executor, { maxBatchSize: 32, ...batching });
  await call.ready();
  return { executor, call };
}

export const double = (n: number): Command => ({ do: "double", n });
/** Restarts do not wait for their back-off; what takes longer than any of those is not hurried. */
export const impatient = {
  now: () => performance.now(),
  after: (delayMs: number, callback: () => void): (() => void) => {
    if (delayMs > 5000) {
      const timer = setTimeout(callback, delayMs);
      return () => clearTimeout(timer);
    }
    const soon = setImmediate(callback);
    return () => clearImmediate(soon);
  },
};

/** A clock for which the machine stands still for a tenth of a second at most: no run is late because nothing could run. */
export function withoutPauses(): typeof impatient {
  const [lookEveryMs, longestMs] = [20, 100];
  let [elapsedMs, lookedAtMs] = [0, performance.now()];
  const now = (): number => {
    const sinceMs = performance.now() - lookedAtMs;
    lookedAtMs += sinceMs;
    return (elapsedMs += Math.min(sinceMs, longestMs));
  };
  return {
    now,
    after(delayMs, callback) {
      if (delayMs <= 0) return impatient.after(0, callback);
      const dueAtMs = now() + delayMs;
      const look = (): void => {
        if (now() < dueAtMs) return;
        clearInterval(looking);
        callback();
      };
      const looking = setInterval(look, Math.min(delayMs, lookEveryMs));
      return () => clearInterval(looking);
    },
  };
}

/** As `impatient`, but no time passes by itself, and pauses of `fromMs` to 30 s last until they are let go; later ones do not. */
export function patientFrom(fromMs: number): typeof impatient & { readonly held: number; letGo(): void } {
  const held = new Set<() => void>();
  let isPatient = true;
  return {
    now: () => 0,
    after(delayMs, callback) {
      if (!isPatient || delayMs < fromMs || delayMs > 30_000) return impatient.after(delayMs, callback);
      held.add(callback);
      return () => held.delete(callback);
    },
    get held() {
      return held.size;
    },
    letGo() {
      isPatient = false;
      for (const callback of held) callback();
      held.clear();
    },
  };
}

/** Resolves once an instance is in that state. */
export async function until(executor: WorkerExecutor<Command, string | number>, state: string): Promise<void> {
  while (executor.instances().every((instance) => instance.state !== state)) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}
