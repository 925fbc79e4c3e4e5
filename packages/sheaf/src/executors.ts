export type { RunHandle } from "./core/contract/run-handle.ts";
export { runHandle, type ManualRunHandle, type RunHandleOptions } from "./core/manual-run.ts";
export { executorOf, wrapExecutor, type ExecutorWrap } from "./core/wrap-executor.ts";
