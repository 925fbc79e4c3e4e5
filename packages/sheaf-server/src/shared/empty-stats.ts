import type { BatcherStats } from "sheaf";

const none = { p50: 0, p95: 0, p99: 0, max: 0 };

/** The statistics of a batcher that has done nothing yet. */
export const emptyStats = (name: string): BatcherStats => ({
  name,
  queued: 0,
  inFlight: 0,
  items: { ok: 0, error: 0, timeout: 0, aborted: 0, rejected: 0 },
  batches: 0,
  bisectRuns: 0,
  abandonedRuns: 0,
  meanBatchSize: 0,
  fillRate: 0,
  queueWaitMs: none,
  runMs: none,
  latencyMs: none,
  costModel: null,
  verdict: {
    verdict: "measuring",
    batchSize: 0,
    speedup: null,
    low: null,
    high: null,
    runs: 0,
    cause: "few-runs",
    start: null,
  },
  overload: null,
  cost: null,
  reasons: { full: 0, idle: 0, hold: 0, window: 0, flush: 0, drain: 0, immediate: 0, weight: 0 },
  advice: [],
});
