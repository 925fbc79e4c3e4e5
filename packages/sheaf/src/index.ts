export type { BatchContext, BatchFunction, Executor } from "./core/executor.ts";
export type { BatcherOptions, CallOptions, Cost, Priority, RateLimit } from "./core/options.ts";
export { BatcherError, type ErrorCode } from "./core/errors.ts";
export type { Clock } from "./core/clock.ts";
export type { BatchRecord, Decision, DispatchReason, Policy, QueueView } from "./policies/policy.ts";
export { createBatcher } from "./core/batcher.ts";
export type { Batcher, BatcherStats, Distribution } from "./core/batcher.ts";
export { greedy } from "./policies/greedy.ts";
export { window } from "./policies/window.ts";
