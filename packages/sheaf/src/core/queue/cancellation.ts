import { type ItemRef, reject, type Chunk } from "./chunk.ts";
import { behind, stopsKey } from "./order-keys.ts";
import type { Queue } from "./queue.ts";
import { BatcherError } from "../contract/errors.ts";
import type { Settings } from "../contract/settings.ts";
import { type Clock, consumerOf, type AbortSignalLike } from "../runtime/runtime.ts";

/** Whether the calls of a chunk finish although their signal has aborted. Those of a chunk without a lane run. */
export const isSpared = ({ laneQueue }: { readonly laneQueue: unknown }, signal: AbortSignalLike): boolean =>
  laneQueue === undefined && signal[consumerOf] !== undefined;

/** Calls that are told at once that their deadline has passed; a chunk may exceed it. */
const mostExpired = 500;

export type Outcome = "ok" | "error" | "timeout" | "aborted" | "rejected";

/** Watches the signals and deadlines of waiting and running calls, and settles the calls whose caller leaves. */
export class Cancellation<In> {
  /** The earliest moment at which `expire` must be called; `Infinity` without deadlines. A lower bound. */
  nextDeadlineAtMs: number = Infinity;
  #aborts: AbortListeners | undefined;
  /** Is woken when there may be room in the queue again. */
  scheduler: { wake(): void; readonly stallCause: string | undefined } | undefined;
  readonly #clock: Clock;
  readonly #name: string;
  readonly #queue: Queue<In>;
  /** Chunks in which a live entry may have a deadline. */
  readonly #timed: Set<Chunk<In>> = new Set();

  constructor({ clock, name }: Pick<Settings<In, never>, "clock" | "name">, queue: Queue<In>) {
    this.#clock = clock;
    this.#name = name;
    this.#queue = queue;
  }

  /** Also for those who wait for room; made when the first signal comes. */
  get aborts(): AbortListeners {
    return (this.#aborts ??= new AbortListeners());
  }

  signal(chunk: Chunk<In>, index: number, signal: AbortSignalLike): void {
    (chunk.signals ??= [])[index] = signal;
    const listeners = (chunk.listeners ??= new Map());
    if (listeners.has(signal)) return;
    const listener = (): void => this.#abort(chunk, signal);
    listeners.set(signal, listener);
    this.aborts.add(signal, listener);
  }

  deadline(chunk: Chunk<In>, index: number, atMs: number): void {
    (chunk.deadlinesAtMs ??= [])[index] = atMs;
    if (atMs < chunk.earliestDeadlineAtMs) chunk.earliestDeadlineAtMs = atMs;
    const isLast = index === chunk.count - 1 && atMs >= chunk.latestDeadlineAtMs;
    chunk.latestDeadlineAtMs = isLast ? atMs : Infinity;
    if (atMs < this.nextDeadlineAtMs) this.nextDeadlineAtMs = atMs;
    this.#timed.add(chunk);
  }

  /** The entry has moved, and is watched in its new place. */
  move(from: Chunk<In>, index: number, to: Chunk<In>, at: number): void {
    const signal = from.signals?.[index];
    if (signal !== undefined) this.signal(to, at, signal);
    const deadlineAtMs = from.deadlinesAtMs?.[index];
    if (deadlineAtMs !== undefined) this.deadline(to, at, deadlineAtMs);
  }

  /** The entry is no longer live: it has settled, or has moved. */
  leave(chunk: Chunk<In>, index: number): void {
    chunk.settlers[index] = undefined;
    if (--chunk.live === 0) this.forget(chunk);
  }

  /** The chunk has no live entry left. */
  forget(chunk: Chunk<In>): void {
    if (chunk.listeners !== undefined) {
      for (const [signal, listener] of chunk.listeners) this.aborts.remove(signal, listener);
      chunk.listeners = undefined;
    }
    if (chunk.deadlinesAtMs !== undefined) this.#timed.delete(chunk);
    if (this.#timed.size === 0) this.nextDeadlineAtMs = Infinity;
  }

  /**
   * Settles live entries whose deadline has come; the rest of a great many a moment later, or the event loop would stand still. A
   * listener of a run's signal may call the batcher meanwhile.
   */
  expire(nowMs: number): void {
    const before = this.#queue.tally.timeout;
    this.nextDeadlineAtMs = Infinity;
    for (const chunk of this.#timed) {
      if (this.#queue.tally.timeout - before >= mostExpired) {
        this.nextDeadlineAtMs = nowMs;
        return;
      }
      this.eachLate(chunk, nowMs, (index) => this.expired(chunk, index));
      if (chunk.earliestDeadlineAtMs < this.nextDeadlineAtMs) this.nextDeadlineAtMs = chunk.earliestDeadlineAtMs;
    }
    if (this.#timed.size === 0) this.nextDeadlineAtMs = Infinity;
  }

  /** Calls back with the live entries whose deadline is not after `atMs`; the visitor withdraws the caller, or returns false. */
  eachLate(chunk: Chunk<In>, atMs: number, visit: (index: number) => unknown): void {
    if (chunk.earliestDeadlineAtMs > atMs) return;
    const deadlinesAtMs = chunk.deadlinesAtMs!;
    chunk.earliestDeadlineAtMs = Infinity;
    for (let i = 0; i < chunk.count; i++) {
      // A duplicate may take the place of a caller who left: look again until nothing changes.
      while (chunk.settlers[i] !== undefined && deadlinesAtMs[i]! <= atMs && visit(i) !== false);
      if (chunk.settlers[i] !== undefined && deadlinesAtMs[i]! < chunk.earliestDeadlineAtMs)
        chunk.earliestDeadlineAtMs = deadlinesAtMs[i]!;
    }
  }

  #abort(chunk: Chunk<In>, signal: AbortSignalLike): void {
    if (isSpared(chunk, signal)) return;
    for (let i = 0; i < chunk.count; i++) {
      while (chunk.settlers[i] !== undefined && chunk.signals![i] === signal) {
        this.withdraw(chunk, i, signal.reason, "aborted");
      }
    }
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
    this.#queue.tally[outcome]++;
    const epoch = chunk.epochOf(index);
    const ref = chunk.refs?.[index];
    const leaving = chunk.signals?.[index];
    const isHanded = this.#handToSharer(chunk, index);
    if (!isHanded) this.#remove(chunk, index, nowMs);
    reject(settler, error);
    epoch.settled(1);
    if (outcome !== "aborted") this.holdBehind(ref, leaving, error);
    // The successor's signal may be aborting in this very moment, and its own listener went with the chunk it left.
    const signal = isHanded ? chunk.signals?.[index] : undefined;
    if (signal?.aborted === true && !isSpared(chunk, signal)) this.withdraw(chunk, index, signal.reason, "aborted");
  }

  /** A call has failed. If a consumer made it, those that it has waiting behind it leave, so that they do not run before it. */
  holdBehind(ref: ItemRef<In> | undefined, signal: AbortSignalLike | undefined, error: unknown): void {
    const order = ref?.order;
    if (order === undefined || !stopsKey(signal, order.key, error, ref!.place)) return;
    for (const later of order.waiting()) {
      const { chunk, index, place } = later;
      if (place > ref!.place && chunk.laneQueue !== undefined && chunk.signals?.[index] === signal)
        this.leftBehind(chunk, index);
    }
  }

  /** The callers of an item of a batch whose key has stopped leave before it runs again. Returns whether there were no others. */
  leftBehind(chunk: Chunk<In>, index: number): boolean {
    const { order, place } = chunk.refs?.[index] ?? {};
    while (order !== undefined && chunk.settlers[index] !== undefined) {
      const reason = behind(chunk.signals?.[index], order.key, place);
      if (reason === undefined) return false;
      this.withdraw(chunk, index, reason, "aborted");
    }
    return chunk.settlers[index] === undefined;
  }

  /** With `likelyMs`, a waiting call whose batch takes that long and would end after its deadline. */
  expired(chunk: Chunk<In>, index: number, likelyMs?: number): void {
    const timeoutMs = chunk.deadlinesAtMs![index]! - chunk.arrivedAtMs(index);
    const error =
      likelyMs === undefined
        ? timeoutError(this.#name, timeoutMs, chunk.laneQueue !== undefined, this.scheduler?.stallCause)
        : foreseenError(this.#name, timeoutMs, likelyMs);
    this.withdraw(chunk, index, error, "timeout");
  }

  #remove(chunk: Chunk<In>, index: number, nowMs: number): void {
    this.leave(chunk, index);
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
    this.move(duplicates, successor, chunk, index);
    this.leave(duplicates, successor);
    return true;
  }
}

/** The callbacks of one signal: usually one, so a set is made for the second only. */
interface Heard {
  first: (() => void) | undefined;
  more: Set<() => void> | undefined;
  readonly listener: () => void;
}

/**
 * Listens to callers' signals, with one listener each however many chunks and waiting calls a signal concerns: from the
 * eleventh listener on one signal Node warns of a leak.
 */
export class AbortListeners {
  readonly #bySignal: Map<AbortSignalLike, Heard> = new Map();

  add(signal: AbortSignalLike, callback: () => void): void {
    const known = this.#bySignal.get(signal);
    if (known !== undefined) {
      (known.more ??= new Set()).add(callback);
      return;
    }
    const heard: Heard = { first: callback, more: undefined, listener: () => this.#aborted(signal, heard) };
    this.#bySignal.set(signal, heard);
    signal.addEventListener("abort", heard.listener, { once: true });
  }

  remove(signal: AbortSignalLike, callback: () => void): void {
    const heard = this.#bySignal.get(signal);
    if (heard === undefined) return;
    if (heard.first === callback) heard.first = undefined;
    else heard.more?.delete(callback);
    if (heard.first !== undefined || (heard.more !== undefined && heard.more.size > 0)) return;
    signal.removeEventListener("abort", heard.listener);
    this.#bySignal.delete(signal);
  }

  #aborted(signal: AbortSignalLike, heard: Heard): void {
    heard.first?.();
    // A callback may remove others, which are then not called.
    if (heard.more !== undefined) for (const callback of heard.more) callback();
    this.#bySignal.delete(signal);
  }
}

/** `stallCause`: why it never ran, where that is not for want of capacity. */
export function timeoutError(name: string, waitedMs: number, neverRan: boolean, stallCause?: string): BatcherError {
  const timeoutMs = round(waitedMs);
  const cure = (neverRan ? stallCause : undefined) ?? "Raise timeoutMs, or add capacity.";
  const what = neverRan ? "it was still waiting and will not run" : "its batch was running and its result is dropped";
  return new BatcherError("TIMEOUT", `${name}: no result within ${timeoutMs} ms (timeoutMs); ${what}. ${cure}`, {
    timeoutMs,
    predicted: false,
    waiting: neverRan,
  });
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
