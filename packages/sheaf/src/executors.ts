export type { RunHandle } from "./core/contract/executor.ts";
export {
  executorOf,
  runHandle,
  wrapExecutor,
  type ExecutorWrap,
  type ManualRunHandle,
  type RunHandleOptions,
} from "./core/executors.ts";
