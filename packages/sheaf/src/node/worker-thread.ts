import type { DataOf, InOf, OutOf, WorkerDefinition } from "./contract/define-worker.ts";
import { workerSettings, type EncodingWorkerOptions, type WorkerOptions } from "./contract/options.ts";
import { Pool } from "./pool/pool.ts";
import { openThread } from "./pool/thread-connection.ts";
import type { WorkerExecutor } from "./contract/worker-executor.ts";

/**
 * Runs batches in worker threads: each loads the worker module once and keeps its model.
 * `workerThread<typeof worker>(url)` takes the types from the module's default export.
 *
 * A worker that throws, rejects, exits or fills its heap is replaced, and only its own batch suffers. A crash or a hang
 * in native code is not survived: see `workerProcess`.
 * @throws {TypeError | RangeError} a wrong option. A module that does not load rejects `ready()` with its error.
 */
export function workerThread<Worker extends WorkerDefinition<unknown, unknown>>(
  url: string | URL,
  options?: WorkerOptions<DataOf<Worker>>,
): WorkerExecutor<InOf<Worker>, OutOf<Worker>>;
export function workerThread<In, Out>(url: string | URL, options?: WorkerOptions): WorkerExecutor<In, Out>;
export function workerThread(url: string | URL, options: EncodingWorkerOptions = {}): WorkerExecutor<unknown, unknown> {
  const settings = workerSettings(url, options);
  const { data, heapLimitMb, rowEncoder, wantsEncoded, maxResultBytes } = settings;
  // On other systems this would lower the priority of the whole process.
  const niceness = process.platform === "linux" ? settings.niceness : 0;
  return new Pool({
    ...settings,
    open: (events) =>
      openThread({ url: settings.url, data, rowEncoder, niceness, heapLimitMb, wantsEncoded, maxResultBytes }, events),
  });
}
