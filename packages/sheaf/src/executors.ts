export type { RunHandle } from "./core/contract/executor.ts";
export { runHandle, type ManualRunHandle, type RunHandleOptions } from "./core/contract/base-run-handle.ts";
export { executorOf, wrapExecutor, type ExecutorWrap } from "./core/wrap-executor.ts";
