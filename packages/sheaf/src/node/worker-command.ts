import { Declared } from "./command/declared.ts";
import type { WorkerDeclaration } from "./command/declaration.ts";
import { commandSettings, type CommandOptions } from "./command/options.ts";
import { openCommand } from "./pool/command-connection.ts";
import { Pool } from "./pool/pool.ts";
import type { WorkerExecutor } from "./contract/worker-executor.ts";

/** An executor whose batches run in a program of any language. */
export interface CommandExecutor<In, Out> extends WorkerExecutor<In, Out> {
  /** The worker's declaration when it was first ready; undefined until then. */
  readonly declaration: WorkerDeclaration | undefined;
}

/**
 * Runs batches in worker processes of any language that speak the worker protocol, such as Python's with `sheaf_worker`, whose folder
 * is put on PYTHONPATH. The worker declares the types of items and results: text, JSON, typed arrays of a fixed shape, or objects of
 * these.
 *
 * Survives the same faults as `workerProcess`. A kill takes the worker's whole process group. Linux and macOS.
 * @throws {TypeError | RangeError} a wrong option. {Error} on Windows.
 */
export function workerCommand<In, Out>(options: CommandOptions): CommandExecutor<In, Out> {
  if (process.platform === "win32") {
    throw new Error("workerCommand runs on Linux and macOS, not on Windows: use it in WSL or a container.");
  }
  const settings = commandSettings(options);
  const declared = new Declared();
  const pool = new Pool<In, Out>({
    ...settings,
    open: (events, index) => openCommand(settings, declared, events, index),
  });
  return Object.defineProperty(pool, "declaration", { get: () => declared.first }) as Pool<In, Out> &
    CommandExecutor<In, Out>;
}
