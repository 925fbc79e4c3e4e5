import { RollingHistogram } from "../../../core/observe/rolling-histogram.ts";
import { LearnedCost } from "../../../core/observe/learned-cost.ts";
import { Statistics, noReasons } from "../../../core/observe/stats.ts";
import type { BatchRecord, DispatchReason } from "../../../policies/policy.ts";
import type { ReplyHead } from "../wire/envelope.ts";
import type { BatcherStats } from "../../../core/contract/stats.ts";

/** Batches remembered, so that each is counted once however many of its items are this front end's. */
const remembered = 1024;

export type Outcome = keyof BatcherStats["items"];

/** A front end's view of the batches of its items, in the shape of every batcher's figures. */
export class SeenBatches {
  readonly tally: Record<Outcome, number> = { ok: 0, error: 0, timeout: 0, aborted: 0, rejected: 0 };
  readonly latencyMs: RollingHistogram = new RollingHistogram();
  readonly #listeners: Set<(record: BatchRecord) => void> = new Set();
  readonly #seen: Set<string> = new Set();
  readonly #name: string;
  readonly #cost: LearnedCost = new LearnedCost();
  readonly #statistics: Statistics;
  #batches = 0;

  /** `maxBatchSize` is that of the workers; without it fill rates are unknown and stay 0. */
  constructor(name: string, maxBatchSize: number) {
    this.#name = name;
    this.#statistics = new Statistics({ maxBatchSize, maxBatchWeight: Infinity }, undefined, this.#cost);
  }

  answered({ n, b, w, m, s, c, e }: ReplyHead, queueMs: number, nowMs: number): void {
    if (w === "") return;
    const key = `${w}:${b}`;
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    if (this.#seen.size > remembered) this.#seen.delete(this.#seen.values().next().value!);
    const record: BatchRecord = {
      batchId: ++this.#batches,
      // A newer worker may send a reason that this front end does not know.
      reason: s in noReasons() ? (s as DispatchReason) : "idle",
      size: n,
      weight: n,
      group: undefined,
      startedAtMs: nowMs - m,
      queueWaitMs: { mean: queueMs, max: queueMs },
      runMs: m,
      tookMs: m,
      outcome: e === undefined ? "ok" : "error",
      attempt: c,
    };
    if (record.outcome === "ok") this.#cost.observe(n, m);
    this.#statistics.observe(record);
    for (const listener of this.#listeners) listener(record);
  }

  subscribe(listener: (record: BatchRecord) => void): () => void {
    const own = (record: BatchRecord): void => listener(record);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  stats(queued: number, nowMs: number): BatcherStats {
    return {
      name: this.#name,
      queued,
      inFlight: 0,
      items: { ...this.tally },
      abandonedRuns: 0,
      latencyMs: this.latencyMs.distribution(nowMs),
      ...this.#statistics.snapshot(nowMs),
    };
  }
}
