export { defineWorker } from "./contract/define-worker.ts";
export type {
  DataOf,
  FinishingWorker,
  InOf,
  OutOf,
  PlainWorker,
  PreparingWorker,
  RunContext,
  StagedWorker,
  WorkerDefinition,
  WorkerLifecycle,
} from "./contract/define-worker.ts";
export type { EncodeRows, WorkerOptions } from "./contract/options.ts";
export { encodedRow, type RowEncoder } from "./wire/encoded-rows.ts";
export type {
  InstanceEvent,
  InstanceInfo,
  InstanceRole,
  InstanceState,
  WorkerExecutor,
  WorkerOutage,
} from "./contract/worker-executor.ts";
export { workerThread } from "./worker-thread.ts";
export { workerProcess } from "./worker-process.ts";
export { publishBatches, type BatchMessage } from "./diagnostics.ts";
export { pipeline } from "./pipeline.ts";
export type { PipelineOptions, StageFunction } from "./pipeline.ts";
export { workerCommand, type CommandExecutor } from "./worker-command.ts";
export type { CommandOptions, WorkerLogLine } from "./command/options.ts";
export { elementTypes, typedArrays } from "../shared/element-types.ts";
export type { ElementType, TensorDtype, TypedArray, TypedArrayConstructor } from "../shared/element-types.ts";
export type { WorkerColumn, WorkerDeclaration } from "./command/declaration.ts";
export { checkWorker, type CheckOptions, type WorkerCheck } from "./command/check/check-worker.ts";
