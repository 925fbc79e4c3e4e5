import type { DataOf, InOf, OutOf, WorkerDefinition } from "./contract/define-worker.ts";
import { workerSettings, type EncodingWorkerOptions, type WorkerOptions } from "./contract/options.ts";
import { Pool } from "./pool/pool.ts";
import { openProcess } from "./pool/process-connection.ts";
import type { WorkerExecutor } from "./contract/worker-executor.ts";

/**
 * Runs batches in worker processes: each loads the worker module once and keeps its model.
 * `workerProcess<typeof worker>(url)` takes the types from the module's default export.
 *
 * Survives all that `workerThread` does, and crashes in native code, `kill -9` and hangs: a run past the batcher's
 * `runTimeoutMs` ends with its process, which is started again.
 * @throws {TypeError | RangeError} a wrong option. A module that does not load rejects `ready()` with its error.
 */
export function workerProcess<Worker extends WorkerDefinition<unknown, unknown>>(
  url: string | URL,
  options?: WorkerOptions<DataOf<Worker>>,
): WorkerExecutor<InOf<Worker>, OutOf<Worker>>;
export function workerProcess<In, Out>(url: string | URL, options?: WorkerOptions): WorkerExecutor<In, Out>;
export function workerProcess(
  url: string | URL,
  options: EncodingWorkerOptions = {},
): WorkerExecutor<unknown, unknown> {
  const settings = workerSettings(url, options);
  const { data, niceness, heapLimitMb, rowEncoder, wantsEncoded, maxResultBytes } = settings;
  return new Pool({
    ...settings,
    open: (events) =>
      openProcess({ url: settings.url, data, rowEncoder, niceness, heapLimitMb, wantsEncoded, maxResultBytes }, events),
  });
}
