import { LearnedCost } from "../../../core/measure/learned-cost.ts";
import { snapshotOf } from "../../../core/measure/snapshot.ts";
import { LaneLatency, Statistics, noReasons, type Calls } from "../../../core/measure/stats.ts";
import { Subscribers } from "../../../core/measure/subscribers.ts";
import type { Priority } from "../../../core/contract/options.ts";
import type { Outcome } from "../../../core/queue/cancellation.ts";
import type { BatchRecord, DispatchReason } from "../../../policies/policy.ts";
import type { ReplyHead } from "../wire/envelope.ts";
import type { BatcherStats } from "../../../core/contract/stats.ts";

/** Batches remembered, so that each is counted once however many of its items are this front end's. */
const remembered = 1024;

interface WaitingBulk {
  readonly queued: number;
  readonly oldestAtMs: number;
}

/** A front end's view of the batches of its items, in the shape of every batcher's figures. */
export class SeenBatches {
  readonly tally: Record<Outcome, number> = { ok: 0, error: 0, timeout: 0, aborted: 0, rejected: 0 };
  readonly latencyMs: LaneLatency = new LaneLatency();
  /** Items answered and refused so far. */
  readonly #lanes = { live: { dispatched: 0, rejected: 0 }, bulk: { dispatched: 0, rejected: 0 } };
  readonly subscribers: Subscribers;
  /** The number of each batch here, by its worker and its number there. */
  readonly #seen: Map<string, number> = new Map();
  readonly #name: string;
  readonly #cost: LearnedCost = new LearnedCost();
  readonly #calls: { -readonly [Name in keyof Calls]: Calls[Name] };
  readonly #statistics: Statistics;
  #batches = 0;

  /** `maxBatchSize` is that of the workers; without it fill rates are unknown and stay 0. */
  constructor(name: string, maxBatchSize: number) {
    this.#name = name;
    this.subscribers = new Subscribers(name);
    const { tally, latencyMs } = this;
    this.#calls = { arrived: 0, tally, latencyMs, lanes: this.#lanesOf(0, { queued: 0, oldestAtMs: Infinity }, 0) };
    this.#statistics = new Statistics({ maxBatchSize }, this.#cost, this.#calls);
  }

  /** Calls came, which want their results within `timeoutMs`. */
  arrived(calls: number, timeoutMs: number): void {
    this.#calls.arrived += calls;
    this.#statistics.due.learn(timeoutMs);
  }

  /** A call has ended. */
  ended(lane: Priority, outcome: Outcome, items: number = 1): void {
    this.tally[outcome] += items;
    const counts = this.#lanes[lane === "bulk" ? "bulk" : "live"];
    if (outcome === "rejected") counts.rejected += items;
    else if (outcome !== "aborted") counts.dispatched += items;
  }

  /** One item of a batch has been answered. @returns the number of the batch here; 0 where there was none. */
  answered({ n, b, w, m, s, c, p }: ReplyHead, queueMs: number, nowMs: number): number {
    if (w === "") return 0;
    const key = `${w}:${b}`;
    const known = this.#seen.get(key);
    if (known !== undefined) return known;
    const batchId = ++this.#batches;
    this.#seen.set(key, batchId);
    if (this.#seen.size > remembered) this.#seen.delete(this.#seen.keys().next().value!);
    const record: BatchRecord = {
      batchId,
      // A newer worker may send a reason that this front end does not know.
      reason: s in noReasons() ? (s as DispatchReason) : "idle",
      size: n,
      weight: n,
      group: undefined,
      startedAtMs: nowMs - m,
      queueWaitMs: { mean: queueMs, max: queueMs },
      runMs: m,
      tookMs: m,
      outcome: p === true ? "partial" : "ok",
      failedItems: 0,
      extraRuns: 0,
      attempt: c,
    };
    if (record.outcome === "ok") this.#cost.observe(n, m);
    this.#statistics.observe(record, nowMs);
    this.subscribers.observe(record);
    return batchId;
  }

  /** `queued`: calls without a result, in all and of bulk, of which the oldest came then. */
  stats(queued: number, bulk: WaitingBulk, nowMs: number): BatcherStats {
    const counts = {
      name: this.#name,
      queued,
      inFlight: 0,
      bisectRuns: 0,
      abandonedRuns: 0,
      hungRuns: 0,
      concurrency: null,
      rateLimit: null,
      pause: null,
      tenants: null,
    };
    this.#calls.lanes = this.#lanesOf(queued, bulk, nowMs);
    return snapshotOf(this.#statistics, nowMs, counts);
  }

  #lanesOf(queued: number, bulk: WaitingBulk, nowMs: number): Calls["lanes"] {
    return {
      live: { queued: queued - bulk.queued, ...this.#lanes.live },
      bulk: { queued: bulk.queued, ...this.#lanes.bulk, oldestMs: Math.max(0, nowMs - bulk.oldestAtMs) },
    };
  }
}
