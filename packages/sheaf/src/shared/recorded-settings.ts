import type { Settings } from "../core/contract/settings.ts";

/** What is not set is missing. */
export interface RecordedSettings {
  readonly maxBatchSize?: number | undefined;
  readonly maxBatchWeight?: number | undefined;
  readonly batchWeight?: "sum" | "padded" | "apart" | undefined;
  readonly maxWaitMs?: number | undefined;
  readonly concurrency: number;
  /** Batches that each busy slot takes ahead. */
  readonly prefetch?: number | undefined;
  readonly maxQueueSize?: number | undefined;
  readonly timeoutMs?: number | undefined;
  readonly refuseLate?: number | undefined;
  readonly policy: string;
  readonly latencyBudgetMs?: number | undefined;
  readonly overloadOrder?: "newest" | "arrival" | undefined;
  readonly hasTenants?: true | undefined;
}

/** As they are now. */
export function recordedSettings(settings: Settings<never, never>): RecordedSettings {
  const { policy, slots, maxBatchSize, maxWaitMs, maxQueueSize, fairKey } = settings;
  const { maxBatchWeight, batchWeight, timeoutMs, refuseLate, overloadOrder, prefetch } = settings;
  const finite = (value: unknown): number | undefined => (Number.isFinite(value) ? (value as number) : undefined);
  return {
    maxBatchSize: finite(maxBatchSize),
    maxBatchWeight: finite(maxBatchWeight),
    batchWeight,
    maxWaitMs: finite(maxWaitMs),
    concurrency: slots.limit,
    prefetch: prefetch || undefined,
    maxQueueSize: finite(maxQueueSize),
    timeoutMs,
    refuseLate,
    policy: policy.name,
    latencyBudgetMs: policy.latencyBudgetMs,
    overloadOrder,
    hasTenants: fairKey === undefined ? undefined : true,
  };
}
