import { LearnedCost } from "../../dist/core/measure/learned-cost.js";
import type { BatchRecord, Policy, QueueView } from "../../dist/index.js";

/** A queue as a policy sees it: one slot, free, batches of 32, nothing held so far. */
export const view = ({ cost = new LearnedCost(), ...overrides }: Partial<QueueView> = {}): QueueView => ({
  nowMs: 0,
  waiting: 1,
  oldestAtMs: overrides.nowMs ?? 0,
  deadlineAtMs: Infinity,
  coreShortage: 0,
  outstanding: overrides.waiting ?? 1,
  slots: 1,
  freeSlots: 1,
  prefetch: 0,
  maxBatchSize: 32,
  maxWaitMs: Infinity,
  arrivals: 0,
  weight: overrides.waiting ?? 1,
  cost,
  nextMs: (size) => cost.at(size),
  ...overrides,
});

/** A policy that is taught by its own cost model. */
export interface Trained extends Omit<Policy, "observe"> {
  observe(record: BatchRecord, nowMs: number): void;
}

/** A policy with the cost model that its batcher would have: its views carry the model, and a batch teaches it first. */
export function withCost(policy: Policy): Trained {
  const cost = new LearnedCost();
  const seen = (view: QueueView): QueueView => ({ ...view, cost, nextMs: (size) => cost.at(size) });
  return {
    name: policy.name,
    get aheadSize() {
      return policy.aheadSize;
    },
    decide: (view) => policy.decide(seen(view)),
    arrived: (view) => policy.arrived?.(seen(view)),
    observe: (record, nowMs) => {
      if (record.outcome === "ok") cost.observe(record.size, record.runMs);
      policy.observe?.(record, nowMs, cost);
    },
  };
}

export const record = (size: number, runMs: number, overrides: Partial<BatchRecord> = {}): BatchRecord => ({
  batchId: 1,
  reason: "idle",
  size,
  weight: size,
  group: undefined,
  startedAtMs: 0,
  queueWaitMs: { mean: 0, max: 0 },
  runMs,
  tookMs: runMs,
  outcome: "ok",
  failedItems: 0,
  extraRuns: 0,
  attempt: 1,
  ...overrides,
});
