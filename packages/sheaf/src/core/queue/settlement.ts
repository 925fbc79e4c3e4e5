import { reject, type Chunk } from "./chunk.ts";
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
  settleAll(chunk: Chunk<In>, results: ArrayLike<unknown>, nowMs: number): void {
    if (chunk.epochs !== undefined) {
      for (let i = 0; i < chunk.count; i++) this.settle(chunk, i, results[i], nowMs);
      return;
    }
    const { settlers, arrivalsAtMs, count, refs, lanes } = chunk;
    const areAlike = arrivalsAtMs === undefined && lanes === undefined;
    let ok = 0;
    try {
      for (let i = 0; i < count; i++) {
        const settler = settlers[i];
        if (settler === undefined) continue;
        const result = results[i];
        const ref = refs?.[i];
        if (result instanceof Error || ref?.duplicates !== undefined) {
          this.settle(chunk, i, result, nowMs);
          continue;
        }
        ref?.leaveDedupe?.(ref);
        settlers[i] = undefined;
        ok++;
        if (!areAlike) this.#took(chunk, i, nowMs);
        if (typeof settler === "function") settler(result);
        else settler.fulfil(result, chunk as Chunk, i, nowMs);
      }
    } finally {
      if (areAlike && ok > 0) this.latencyMs.live.record(nowMs, nowMs - chunk.firstAtMs, ok);
      this.tally.ok += ok;
      chunk.live -= ok;
      chunk.epoch.settled(ok);
      if (chunk.live === 0 && (chunk.listeners ?? chunk.deadlinesAtMs) !== undefined)
        this.#queue.cancellation.forget(chunk);
    }
  }

  /** Gives one entry of a batch its result; an `Error` rejects that caller only. No-op where the caller has left. */
  settle(
    chunk: Chunk<In>,
    index: number,
    value: unknown,
    endedAtMs?: number,
    outcome: Outcome = value instanceof Error ? "error" : "ok",
  ): void {
    const settler = chunk.settlers[index];
    if (settler === undefined) return;
    this.#queue.cancellation.leave(chunk, index);
    // Only now: a clock may call the batcher, and its caller can leave no more.
    const nowMs = endedAtMs ?? this.#clock.now();
    this.tally[outcome]++;
    this.#took(chunk, index, nowMs);
    if (outcome !== "ok") reject(settler, value);
    else if (typeof settler === "function") settler(value);
    else settler.fulfil(value, chunk as Chunk, index, nowMs);
    chunk.epochOf(index).settled(1);
    const ref = chunk.refs?.[index];
    ref?.leaveDedupe?.(ref);
    const duplicates = ref?.duplicates;
    if (duplicates !== undefined) {
      duplicates.run = chunk.run;
      for (let i = 0; i < duplicates.count; i++) this.settle(duplicates, i, value, nowMs, outcome);
    }
    if (outcome === "ok" || ref?.order === undefined) return;
    for (const signal of [chunk.signals?.[index], ...(duplicates?.signals ?? [])])
      this.#queue.cancellation.holdBehind(ref, signal, value);
  }

  #took(chunk: Chunk<In>, index: number, nowMs: number): void {
    const isBulk = chunk.lanes?.[index] === 2 || chunk.lifted?.[index] === true;
    this.latencyMs[isBulk ? "bulk" : "live"].record(nowMs, nowMs - chunk.arrivedAtMs(index));
  }

  /** See `Cancellation`. */
  leftBehind(chunk: Chunk<In>, index: number): boolean {
    return this.#queue.cancellation.leftBehind(chunk, index);
  }

  /** Rejects every caller that is left in a chunk with the same error. */
  failAll(chunk: Chunk<In>, error: unknown, outcome: Outcome = "error"): void {
    const nowMs = this.#clock.now();
    for (let i = 0; i < chunk.count; i++) this.settle(chunk, i, error, nowMs, outcome);
  }
}
