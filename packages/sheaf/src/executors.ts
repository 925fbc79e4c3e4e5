export type { BatchContext } from "./core/contract/batch-context.ts";
export type { BatchFunction, BatchResults, Executor, KeyedResults, RunTime } from "./core/contract/executor.ts";
export type { RunHandle, RunPart } from "./core/contract/run-handle.ts";
export { runHandle, type ManualRunHandle, type RunHandleOptions } from "./core/manual-run.ts";
export { executorOf, wrapExecutor, type ExecutorWrap } from "./core/wrap-executor.ts";
