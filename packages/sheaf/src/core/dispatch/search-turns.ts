import type { Clock } from "../runtime/runtime.ts";
import type { Run } from "./run.ts";

/** Of the run time while others wait, the search for the items to blame gets one part in five. */
const othersToOne = 4;
/** Failed batches at most that are searched without a slot; further ones keep theirs. */
const spareSearches = 4;

interface TurnSettings {
  readonly clock: Clock;
  readonly slots: { readonly limit: number };
}

/** The slots of a dispatcher. */
export interface Slots<In> {
  /** One is free. Runs that never end for an item that is searched must not end the search. */
  readonly hasSlot: boolean;
  readonly isStopped: boolean;
  hold(run: Run<In>, nowMs: number): number;
  leave(run: Run<In>, nowMs: number): void;
  freed(nowMs: number): void;
}

/**
 * The turns of failed batches whose items are searched: each has left its slot, and gets one for each of its parts when nobody
 * else wants it, or when the search has had less than its share.
 */
export class SearchTurns<In> {
  readonly #settings: TurnSettings;
  readonly #slots: Slots<In>;
  readonly #queue: { readonly size: number };
  readonly #searched: Set<Run<In>> = new Set();
  readonly #waiting: { readonly run: Run<In>; readonly begin: () => void }[] = [];
  /** Until then the others go first. */
  #othersUntilMs = -Infinity;

  constructor(settings: TurnSettings, slots: Slots<In>, queue: { readonly size: number }) {
    this.#settings = settings;
    this.#slots = slots;
    this.#queue = queue;
  }

  /** The batches that are searched without a slot of their own. */
  get runs(): Iterable<Run<In>> {
    return this.#searched;
  }

  /** Whether a part waits for a slot, and there is one. */
  get isWanted(): boolean {
    return this.#waiting.length > 0 && this.#slots.hasSlot;
  }

  /** Gives free slots to parts: to all, or `onlyDue` to one that goes even before the others. */
  give(nowMs: number, onlyDue: boolean): void {
    while (this.isWanted && !(onlyDue && nowMs < this.#othersUntilMs)) {
      const { run, begin } = this.#waiting.shift()!;
      begin();
      this.#slots.hold(run, nowMs);
      if (onlyDue) return;
    }
  }

  /** A failed batch leaves its slot: not beyond a number of them. */
  admit(run: Run<In>, nowMs: number): void {
    if (this.#searched.size >= this.#settings.slots.limit + spareSearches) return;
    this.#searched.add(run);
    this.#slots.leave(run, nowMs);
    this.#slots.freed(nowMs);
  }

  leave(run: Run<In>): void {
    this.#searched.delete(run);
  }

  /** Resolves when the batch has a slot for a part of it. */
  async take(run: Run<In>): Promise<void> {
    if (!this.#searched.has(run) || this.#slots.isStopped) return;
    const nowMs = this.#settings.clock.now();
    if (this.#slots.hasSlot && this.#queue.size === 0 && this.#waiting.length === 0) {
      this.#slots.hold(run, nowMs);
      return;
    }
    const turn = new Promise<void>((begin) => this.#waiting.push({ run, begin }));
    this.#slots.freed(nowMs);
    await turn;
    run.searchWaitMs += this.#settings.clock.now() - nowMs;
  }

  /** A part of the batch has ended. */
  end(run: Run<In>, nowMs: number): void {
    if (!this.#searched.has(run) || !run.hasSlot) return;
    const fromMs = Math.max(nowMs, this.#othersUntilMs);
    this.#othersUntilMs = fromMs + (othersToOne * (nowMs - run.heldAtMs)) / this.#settings.slots.limit;
    this.#slots.leave(run, nowMs);
    this.#slots.freed(nowMs);
  }

  /** Nothing is dispatched any more: those that wait find that out. */
  stop(): void {
    for (const { begin } of this.#waiting.splice(0)) begin();
  }
}
