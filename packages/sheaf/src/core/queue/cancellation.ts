import { type Batch, Entry, reject } from "./entry.ts";
import { Deadlines, type Watched } from "./deadlines.ts";
import { behind, type OrderKeys, stopsKey } from "./order-keys.ts";
import type { Tenants } from "./tenants.ts";
import { BatcherError } from "../contract/errors.ts";
import type { Settings } from "../contract/settings.ts";
import type { Clock } from "../runtime/runtime.ts";
import { consumerOf, type AbortSignalLike } from "../runtime/signals.ts";

/** Whether a call finishes although its signal has aborted. */
export const isSpared = ({ laneQueue }: { readonly laneQueue: unknown }, signal: AbortSignalLike): boolean =>
  laneQueue === undefined && signal[consumerOf] !== undefined;

/** Calls that are told at once that their deadline has passed. */
const mostExpired = 500;

export type Outcome = "ok" | "error" | "timeout" | "aborted" | "rejected";

/** One who waits for room. */
interface AwaitsRoom extends Watched {
  dismiss(error: unknown, outcome: Outcome): void;
}

/** What its caller leaves. */
interface LeftQueue<In> {
  readonly tally: Record<Outcome, number>;
  readonly order: OrderKeys<In> | undefined;
  readonly tenants: Tenants<In> | undefined;
  leave(entry: Entry<In>, waitedMs: number): void;
}

/** Watches the signals and deadlines of waiting and running calls, and settles the calls whose caller leaves. */
export class Cancellation<In> {
  /** Made when the first deadline comes. */
  deadlines: Deadlines<Entry<In> | AwaitsRoom> | undefined;
  #aborts: AbortListeners<Entry<In> | AwaitsRoom> | undefined;
  /** Is woken when there may be room in the queue again. */
  scheduler: { wake(): void; readonly stallCause: string | undefined } | undefined;
  readonly #clock: Clock;
  readonly #name: string;
  readonly #queue: LeftQueue<In>;

  constructor({ clock, name }: Pick<Settings<In, never>, "clock" | "name">, queue: LeftQueue<In>) {
    this.#clock = clock;
    this.#name = name;
    this.#queue = queue;
  }

  /** Made when the first signal comes. */
  get aborts(): AbortListeners<Entry<In> | AwaitsRoom> {
    return (this.#aborts ??= new AbortListeners((watched) => {
      const signal = watched.terms.signal!;
      if (!(watched instanceof Entry)) watched.dismiss(signal.reason, "aborted");
      else if (!isSpared(watched, signal)) this.withdraw(watched, signal.reason, "aborted");
    }));
  }

  /** From now on the signal and the deadline of its caller count. */
  watch(watched: Entry<In> | AwaitsRoom): void {
    const { signal, deadlineAtMs } = watched.terms;
    if (signal !== undefined) this.aborts.add(signal, watched);
    if (deadlineAtMs !== Infinity) (this.deadlines ??= new Deadlines()).add(watched);
  }

  /** Its caller has settled. */
  unwatch(watched: Entry<In> | AwaitsRoom): void {
    const { signal, deadlineAtMs } = watched.terms;
    if (signal !== undefined) this.aborts.remove(signal, watched);
    if (deadlineAtMs !== Infinity) this.deadlines!.left();
  }

  /**
   * Settles those whose deadline has come; the rest of a great many a moment later, or the event loop would stand still. A
   * listener of a run's signal may call the batcher meanwhile.
   */
  expire(nowMs: number): void {
    for (let left = mostExpired; left > 0; left--) {
      const watched = this.deadlines?.due(nowMs);
      if (watched === undefined) return;
      this.expired(watched);
    }
  }

  /**
   * One caller leaves before its result, waiting or running. Its item leaves too unless a duplicate shares it, which
   * then takes its place.
   */
  withdraw(entry: Entry<In>, error: unknown, outcome: Outcome): void {
    const { settler } = entry;
    if (settler === undefined) return;
    // First: a clock may call the batcher, which must not happen while an item is half gone. Whoever it makes leave has left already.
    const nowMs = entry.laneQueue === undefined ? 0 : this.#clock.now();
    if (entry.settler !== settler) return;
    this.#queue.tally[outcome]++;
    const { epoch, ties } = entry;
    const { signal: leaving } = entry.terms;
    entry.settler = undefined;
    this.unwatch(entry);
    const isHanded = this.#handToSharer(entry);
    if (!isHanded) this.#remove(entry, nowMs);
    reject(settler, error);
    epoch.settled(1);
    if (outcome !== "aborted") this.holdBehind(ties, leaving, error);
    // The successor's signal may be aborting in this very moment.
    const signal = isHanded ? entry.terms.signal : undefined;
    if (signal?.aborted === true && !isSpared(entry, signal)) this.withdraw(entry, signal.reason, "aborted");
  }

  /** A call has failed. If a consumer made it, those that it has waiting behind it leave, so that they do not run before it. */
  holdBehind(ties: Entry<In>["ties"], signal: AbortSignalLike | undefined, error: unknown): void {
    const order = ties?.order;
    if (order === undefined || !stopsKey(signal, order.key, error, ties!.rank)) return;
    for (const later of order.waiting())
      if (later.ties!.rank > ties!.rank && later.laneQueue !== undefined && later.terms.signal === signal)
        this.leftBehind(later);
  }

  /** The callers of an item of a batch whose key has stopped leave before it runs again. Returns whether there were no others. */
  leftBehind(entry: Entry<In>): boolean {
    const { order, rank } = entry.ties ?? {};
    while (order !== undefined && entry.settler !== undefined) {
      const reason = behind(entry.terms.signal, order.key, rank);
      if (reason === undefined) return false;
      this.withdraw(entry, reason, "aborted");
    }
    return entry.settler === undefined;
  }

  /** With `likelyMs`, a waiting call whose batch takes that long and would end after its deadline. */
  expired(watched: Entry<In> | AwaitsRoom, likelyMs?: number): void {
    const { deadlineAtMs, arrivedAtMs } = watched.terms;
    const timeoutMs = deadlineAtMs - arrivedAtMs;
    const isWaiting = !(watched instanceof Entry) || watched.laneQueue !== undefined;
    const error =
      likelyMs === undefined
        ? timeoutError(this.#name, timeoutMs, isWaiting, this.scheduler?.stallCause)
        : foreseenError(this.#name, timeoutMs, likelyMs);
    if (watched instanceof Entry) this.withdraw(watched, error, "timeout");
    else watched.dismiss(error, "timeout");
  }

  #remove(entry: Entry<In>, nowMs: number): void {
    const { ties, place, laneQueue } = entry;
    ties?.equal?.leave(entry);
    if (laneQueue !== undefined) {
      if (ties?.order !== undefined) this.#queue.order!.leaves(entry);
      this.#queue.leave(entry, nowMs - entry.terms.arrivedAtMs);
      this.scheduler?.wake();
    } else if (place === undefined) this.#queue.tenants?.leftShared(entry);
    else {
      const batch = place as Batch<In>;
      if (--batch.live === 0) batch.run?.abandonedByAll();
    }
  }

  #handToSharer(entry: Entry<In>): boolean {
    const { ties } = entry;
    const successor = ties?.sharers?.find(({ settler }) => settler !== undefined);
    if (successor === undefined) return false;
    const { settler, terms } = successor;
    successor.settler = undefined;
    this.unwatch(successor);
    ties!.sharers!.splice(ties!.sharers!.indexOf(successor), 1);
    this.#queue.tenants?.handed(entry, successor);
    // The item has waited since its first caller came, however late its successor did: it must not be held again from
    // then.
    entry.laneQueue?.keepAge(entry.terms.arrivedAtMs);
    ties!.lane = entry.lane;
    entry.settler = settler;
    entry.terms = terms;
    this.watch(entry);
    return true;
  }
}

/**
 * Listens to callers' signals, with one listener each however many calls a signal concerns: from the eleventh listener on
 * one signal Node warns of a leak. `tell` is called with what is no callback.
 */
export class AbortListeners<T extends object = never> {
  readonly #bySignal: Map<AbortSignalLike, { readonly all: Set<T | (() => void)>; readonly listener: () => void }> =
    new Map();
  readonly #tell: ((concerned: T) => void) | undefined;

  constructor(tell?: (concerned: T) => void) {
    this.#tell = tell;
  }

  add(signal: AbortSignalLike, concerned: T | (() => void)): void {
    const heard = this.#bySignal.get(signal);
    if (heard !== undefined) return void heard.all.add(concerned);
    const all = new Set([concerned]);
    const listener = (): void => {
      // A callback may remove others, which are then not called.
      for (const each of all)
        if (typeof each === "function") each();
        else this.#tell!(each);
      this.#bySignal.delete(signal);
    };
    this.#bySignal.set(signal, { all, listener });
    signal.addEventListener("abort", listener, { once: true });
  }

  remove(signal: AbortSignalLike, concerned: T | (() => void)): void {
    const heard = this.#bySignal.get(signal);
    if (heard === undefined || !heard.all.delete(concerned) || heard.all.size > 0) return;
    signal.removeEventListener("abort", heard.listener);
    this.#bySignal.delete(signal);
  }
}

/** `stallCause`: why it never ran, where that is not for want of capacity. */
function timeoutError(name: string, waitedMs: number, neverRan: boolean, stallCause?: string): BatcherError {
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
