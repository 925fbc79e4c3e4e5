import { reject, type Chunk } from "./chunk.ts";
import { BatcherError } from "../contract/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import { RollingHistogram } from "../measure/histogram.ts";
import type { Settings } from "../contract/settings.ts";
import type { Queue } from "./queue.ts";
import { isSpared } from "./cancellation.ts";

export type Outcome = "ok" | "error" | "timeout" | "aborted" | "rejected";

/**
 * The only place where calls settle: with the result of their batch, or because the caller has left. Taking the settler
 * out of its chunk makes it happen exactly once.
 */
export class Settlement<In> {
  readonly tally: Record<Outcome, number> = { ok: 0, error: 0, timeout: 0, aborted: 0, rejected: 0 };
  readonly latencyMs: RollingHistogram = new RollingHistogram();
  readonly #clock: Clock;
  readonly #name: string;
  readonly #queue: Queue<In>;
  /** Is woken when there may be room in the queue again. */
  scheduler: { wake(): void } | undefined;

  constructor({ clock, name }: Pick<Settings<In, never>, "clock" | "name">, queue: Queue<In>) {
    this.#clock = clock;
    this.#name = name;
    this.#queue = queue;
    queue.cancellation.settlement = this;
  }

  /** Items so far, refused ones included. */
  get arrived(): number {
    return this.#queue.arrived + this.tally.rejected;
  }

  /** Gives every remaining caller of a batch its result: the hot path, `settle` for all of them. */
  settleAll(chunk: Chunk<In>, results: ArrayLike<unknown>, nowMs: number): void {
    if (chunk.epochs !== undefined) {
      for (let i = 0; i < chunk.count; i++) this.settle(chunk, i, results[i], nowMs);
      return;
    }
    const { settlers, arrivalsAtMs, count, refs } = chunk;
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
        if (arrivalsAtMs !== undefined) this.latencyMs.record(nowMs, nowMs - arrivalsAtMs[i]!);
        if (typeof settler === "function") settler(result);
        else settler.fulfil(result, chunk as Chunk, i, nowMs);
      }
    } finally {
      if (arrivalsAtMs === undefined && ok > 0) this.latencyMs.record(nowMs, nowMs - chunk.firstAtMs, ok);
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
    this.latencyMs.record(nowMs, nowMs - chunk.arrivedAtMs(index));
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
  }

  /** Rejects every caller that is left in a chunk with the same error. */
  failAll(chunk: Chunk<In>, error: unknown, outcome: Outcome = "error"): void {
    const nowMs = this.#clock.now();
    for (let i = 0; i < chunk.count; i++) this.settle(chunk, i, error, nowMs, outcome);
  }

  /**
   * One caller leaves before its result, waiting or running. Its item leaves too unless a duplicate shares it, which
   * then takes its place.
   */
  withdraw(chunk: Chunk<In>, index: number, error: unknown, outcome: Outcome): void {
    const settler = chunk.settlers[index];
    if (settler === undefined) return;
    // First: a clock may call the batcher, which must not happen while an item is half gone. Whoever it makes leave or move
    // has left or moved already.
    const nowMs = chunk.laneQueue === undefined ? 0 : this.#clock.now();
    if (chunk.settlers[index] !== settler) return;
    this.tally[outcome]++;
    const epoch = chunk.epochOf(index);
    const isHanded = this.#handToSharer(chunk, index);
    if (!isHanded) this.#remove(chunk, index, nowMs);
    reject(settler, error);
    epoch.settled(1);
    // The successor's signal may be aborting in this very moment, and its own listener went with the chunk it left.
    const signal = isHanded ? chunk.signals?.[index] : undefined;
    if (signal?.aborted === true && !isSpared(chunk, signal)) this.withdraw(chunk, index, signal.reason, "aborted");
  }

  /** With `likelyMs`, a waiting call whose batch takes that long and would end after its deadline. */
  expired(chunk: Chunk<In>, index: number, likelyMs?: number): void {
    const timeoutMs = chunk.deadlinesAtMs![index]! - chunk.arrivedAtMs(index);
    const error =
      likelyMs === undefined
        ? timeoutError(this.#name, timeoutMs, chunk.laneQueue !== undefined)
        : foreseenError(this.#name, timeoutMs, likelyMs);
    this.withdraw(chunk, index, error, "timeout");
  }

  #remove(chunk: Chunk<In>, index: number, nowMs: number): void {
    this.#queue.cancellation.leave(chunk, index);
    const ref = chunk.refs?.[index];
    ref?.leaveDedupe?.(ref);
    if (chunk.laneQueue !== undefined) {
      chunk.items[index] = undefined as In;
      if (ref?.order !== undefined) this.#queue.order!.leaves(ref);
      this.#queue.leave(chunk, index, nowMs - chunk.arrivedAtMs(index));
      this.scheduler?.wake();
    } else this.#queue.tenants?.leftShared(chunk, index);
    if (chunk.live === 0) chunk.run?.abandonedByAll();
  }

  #handToSharer(chunk: Chunk<In>, index: number): boolean {
    const duplicates = chunk.refs?.[index]?.duplicates;
    if (duplicates === undefined || duplicates.live === 0) return false;
    const successor = duplicates.settlers.findIndex((settler) => settler !== undefined);
    chunk.settlers[index] = duplicates.settlers[successor];
    this.#queue.tenants?.handed(chunk, index, duplicates, successor);
    // The item has waited since its first caller came, however late its successor did: it must not be held again from
    // then.
    chunk.laneQueue?.keepAge(chunk.arrivedAtMs(index));
    chunk.arriveAt(index, duplicates.arrivedAtMs(successor));
    if (chunk.signals !== undefined) chunk.signals[index] = undefined;
    if (chunk.deadlinesAtMs !== undefined) chunk.deadlinesAtMs[index] = Infinity;
    if (chunk.tags !== undefined) chunk.tags[index] = undefined;
    if (duplicates.tags?.[successor] !== undefined) {
      (chunk.tags ??= [])[index] = duplicates.tags[successor];
      duplicates.tags[successor] = undefined;
    }
    this.#queue.cancellation.move(duplicates, successor, chunk, index);
    this.#queue.cancellation.leave(duplicates, successor);
    return true;
  }
}

export function timeoutError(name: string, waitedMs: number, neverRan: boolean): BatcherError {
  const timeoutMs = round(waitedMs);
  const what = neverRan ? "it was still waiting and will not run" : "its batch was running and its result is dropped";
  return new BatcherError(
    "TIMEOUT",
    `${name}: no result within ${timeoutMs} ms (timeoutMs); ${what}. Raise timeoutMs, or add capacity.`,
    { timeoutMs, predicted: false, waiting: neverRan },
  );
}

function foreseenError(name: string, waitedMs: number, likelyMs: number): BatcherError {
  const timeoutMs = round(waitedMs);
  return new BatcherError(
    "TIMEOUT",
    `${name}: dropped before it ran: its batch would take about ${round(likelyMs)} ms, too long for ${timeoutMs} ms ` +
      '(timeoutMs). Raise timeoutMs, add capacity, or set maxQueueSize: "auto".',
    { timeoutMs, predicted: true, waiting: true, likelyMs },
  );
}

/** Rounded to a microsecond: a difference of two times is slightly off the caller's value. */
const round = (ms: number): number => Math.round(ms * 1000) / 1000;
