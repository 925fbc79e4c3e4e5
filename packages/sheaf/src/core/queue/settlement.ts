import { type Batch, type Entry, isWatched, reject, type Terms } from "./entry.ts";
import type { Clock } from "../runtime/runtime.ts";
import type { LanesStats, TenantStats } from "../contract/stats.ts";
import { LaneLatency } from "../measure/stats.ts";
import type { Queue } from "./queue.ts";
import type { Outcome } from "./cancellation.ts";

/**
 * Where calls settle with the result of their batch; `Cancellation` settles those whose caller leaves before. Taking the
 * settler out of its chunk makes it happen exactly once.
 */
export class Settlement<In> {
  readonly tally: Record<Outcome, number>;
  readonly latencyMs: LaneLatency = new LaneLatency();
  readonly #clock: Clock;
  readonly #queue: Queue<In>;

  constructor(clock: Clock, queue: Queue<In>) {
    this.#clock = clock;
    this.#queue = queue;
    this.tally = queue.tally;
  }

  /** Items so far, refused ones included. */
  get arrived(): number {
    return this.#queue.arrived + this.tally.rejected;
  }

  get lanes(): { readonly live: TenantStats; readonly bulk: Omit<LanesStats["bulk"], "latencyMs"> } {
    const { size, bulkWaiting, taken, bulkTaken, refused, oldestBulkAtMs } = this.#queue;
    return {
      live: { queued: size - bulkWaiting, dispatched: taken - bulkTaken, rejected: refused.live },
      bulk: {
        queued: bulkWaiting,
        dispatched: bulkTaken,
        rejected: refused.bulk,
        oldestMs: Math.max(0, this.#clock.now() - oldestBulkAtMs),
      },
    };
  }

  /** Gives every remaining caller of a batch its result: the hot path, `settle` for all of them. */
  settleAll(batch: Batch<In>, results: ArrayLike<unknown>, nowMs: number): void {
    const { entries } = batch;
    const { cancellation } = this.#queue;
    let ok = 0;
    /** Those who came at once are counted together. */
    let last: Terms | undefined;
    let count = 0;
    try {
      for (let i = 0; i < entries.length; i++) {
        const entry = entries[i]!;
        const { settler, terms, ties } = entry;
        if (settler === undefined) continue;
        const result = results[i];
        if (typeof settler !== "function" || result instanceof Error || ties?.sharers !== undefined || ties?.isLifted) {
          this.settle(batch, entry, result, nowMs);
          continue;
        }
        if (terms !== last) {
          if (last !== undefined && (terms.arrivedAtMs !== last.arrivedAtMs || terms.lane !== last.lane)) {
            this.#took(last, last.lane === 2, nowMs, count);
            count = 0;
          }
          last = terms;
        }
        entry.settler = undefined;
        if (isWatched(terms)) cancellation.unwatch(entry);
        ties?.equal?.leave(entry);
        count++;
        ok++;
        settler(result);
        entry.epoch.settled(1);
      }
    } finally {
      if (last !== undefined && count > 0) this.#took(last, last.lane === 2, nowMs, count);
      this.tally.ok += ok;
      batch.live -= ok;
    }
  }

  /** Gives one entry of a batch its result; an `Error` rejects that caller only. No-op where the caller or the entry has left. */
  settle(
    batch: Batch<In>,
    entry: Entry<In>,
    value: unknown,
    endedAtMs?: number,
    outcome: Outcome = value instanceof Error ? "error" : "ok",
  ): void {
    const { settler, ties, terms, place } = entry;
    if (settler === undefined || (place !== undefined && place !== batch)) return;
    entry.settler = undefined;
    this.#queue.cancellation.unwatch(entry);
    if (place !== undefined) batch.live--;
    // Only now: a clock may call the batcher, and its caller can leave no more.
    const nowMs = endedAtMs ?? this.#clock.now();
    this.tally[outcome]++;
    this.#took(terms, entry.isBulk, nowMs, 1);
    if (outcome !== "ok") reject(settler, value);
    else if (typeof settler === "function") settler(value);
    else settler.fulfil(value, batch.run!, terms.arrivedAtMs, nowMs);
    entry.epoch.settled(1);
    if (ties === undefined) return;
    ties.equal?.leave(entry);
    const sharers = ties.sharers ?? [];
    for (const sharer of sharers) this.settle(batch, sharer, value, nowMs, outcome);
    if (outcome === "ok" || ties.order === undefined) return;
    for (const { terms: caller } of [entry, ...sharers])
      this.#queue.cancellation.holdBehind(ties, caller.signal, value);
  }

  #took({ arrivedAtMs }: Terms, isBulk: boolean, nowMs: number, items: number): void {
    this.latencyMs[isBulk ? "bulk" : "live"].record(nowMs, nowMs - arrivedAtMs, items);
  }

  /** Rejects every caller that is left in a batch with the same error. */
  failAll(batch: Batch<In>, error: unknown, outcome: Outcome = "error"): void {
    const nowMs = this.#clock.now();
    for (const entry of batch.entries) this.settle(batch, entry, error, nowMs, outcome);
  }
}
