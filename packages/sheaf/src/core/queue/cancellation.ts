import type { Chunk } from "./chunk.ts";
import type { Settlement } from "./settlement.ts";
import { sparesRunning, type AbortSignalLike } from "../runtime/globals.ts";

/** Whether the calls of a chunk finish although their signal has aborted. Those of a chunk without a lane run. */
export const isSpared = ({ laneQueue }: { readonly laneQueue: unknown }, signal: AbortSignalLike): boolean =>
  laneQueue === undefined && signal[sparesRunning] === true;

/** Watches the signals and deadlines of waiting and running calls, and reports the calls whose caller has left. */
export class Cancellation<In> {
  /** The earliest moment at which `expire` must be called; `Infinity` without deadlines. A lower bound. */
  nextDeadlineAtMs: number = Infinity;
  #aborts: AbortListeners | undefined;
  /** To whom it reports. */
  settlement: Settlement<In> | undefined;
  /** Chunks in which a live entry may have a deadline. */
  readonly #timed: Set<Chunk<In>> = new Set();

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

  /** Reports every live entry whose deadline has come. A listener of a run's signal may call the batcher meanwhile. */
  expire(nowMs: number): void {
    this.nextDeadlineAtMs = Infinity;
    for (const chunk of this.#timed) {
      this.eachLate(chunk, nowMs, (index) => this.settlement!.expired(chunk, index));
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
        this.settlement!.withdraw(chunk, i, signal.reason, "aborted");
      }
    }
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
