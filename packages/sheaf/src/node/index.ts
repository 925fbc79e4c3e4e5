export { defineWorker } from "./define-worker.ts";
export type { RunContext, WorkerDefinition } from "./define-worker.ts";
export type { InstanceInfo, InstanceRole, InstanceState } from "./instance.ts";
export type { WorkerOptions } from "./options.ts";
export type { InstanceEvent, WorkerExecutor } from "./worker-executor.ts";
export { workerThread } from "./worker-thread.ts";
export { workerProcess } from "./worker-process.ts";
export { pipeline } from "./pipeline.ts";
export type { PipelineOptions } from "./pipeline.ts";
