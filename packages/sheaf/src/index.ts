export type { BatchContext } from "./core/contract/batch-context.ts";
export type { BatchFunction, BatchResults, Executor, KeyedResults } from "./core/contract/executor.ts";
export type { BatcherOptions, CallOptions, Price, Priority } from "./core/contract/options.ts";
export type {
  RateLimit,
  RateLimitFigures,
  RateLimitSeat,
  RateLimitStats,
  SharedRateLimit,
} from "./core/contract/rate-limit.ts";
export { BatcherError, type ErrorCode } from "./core/contract/errors.ts";
export type { Clock } from "./core/runtime/clock.ts";
export type { BatchRecord, Decision, DispatchReason, Policy, QueueView, SizeReason } from "./policies/policy.ts";
export { createRateLimit, type RateLimitOptions } from "./limits/create-rate-limit.ts";
export type { RateShares } from "./limits/process-share.ts";
export { createBatcher } from "./core/create-batcher.ts";
export type { DetailedResult } from "./core/contract/detailed-result.ts";
export type { Batcher, BatcherCapacity, BatcherPending, Result } from "./core/contract/batcher.ts";
export type { CostModel } from "./policies/cost-model.ts";
export { greedy } from "./policies/greedy.ts";
export { fixedWindow, type FixedWindowOptions } from "./policies/fixed-window.ts";
export { auto, type AutoOptions } from "./policies/auto/index.ts";
export { adaptive, type AdaptiveOptions } from "./policies/adaptive.ts";
export type {
  Distribution,
  CostEstimate,
  OpenCause,
  StartGain,
  TenantStats,
  TenantsStats,
  Verdict,
  SlotsNeeded,
  BatcherStats,
} from "./core/contract/stats.ts";
