import type { Clock } from "../runtime/runtime.ts";

/** Of the run time while others wait, the search for the items to blame gets one part in five. */
const othersToOne = 4;
/** Failed batches at most that are searched without a slot; further ones keep theirs. */
const spareSearches = 4;

interface Slots {
  readonly clock: Clock;
  readonly slots: { readonly limit: number };
}

/**
 * The turns of failed batches whose items are searched: each has left its slot, and gets one for each of its parts when nobody
 * else wants it, or when the search has had less than its share.
 */
export class SearchTurns<Run> {
  readonly #settings: Slots;
  readonly #searched: Set<Run> = new Set();
  readonly #waiting: { readonly run: Run; readonly begin: () => void }[] = [];
  /** Until then the others go first. */
  #othersUntilMs = -Infinity;

  constructor(settings: Slots) {
    this.#settings = settings;
  }

  /** The batches that are searched without a slot of their own. */
  get runs(): Iterable<Run> {
    return this.#searched;
  }

  /** Whether a part waits for a slot. */
  get isWanted(): boolean {
    return this.#waiting.length > 0;
  }

  /** Whether a part waits that goes even before the others. */
  isDue(nowMs: number): boolean {
    return this.#waiting.length > 0 && nowMs >= this.#othersUntilMs;
  }

  /** Whether a failed batch may leave its slot: not beyond a number of them. */
  admits(run: Run): boolean {
    if (this.#searched.size >= this.#settings.slots.limit + spareSearches) return false;
    this.#searched.add(run);
    return true;
  }

  has(run: Run): boolean {
    return this.#searched.has(run);
  }

  leave(run: Run): void {
    this.#searched.delete(run);
  }

  /** Resolves when it has a slot. */
  wait(run: Run): Promise<void> {
    return new Promise((begin) => this.#waiting.push({ run, begin }));
  }

  /** The next one, which has a slot from now on. */
  next(): Run {
    const { run, begin } = this.#waiting.shift()!;
    begin();
    return run;
  }

  /** A part took this long in its slot. */
  took(nowMs: number, ms: number): void {
    const fromMs = Math.max(nowMs, this.#othersUntilMs);
    this.#othersUntilMs = fromMs + (othersToOne * ms) / this.#settings.slots.limit;
  }

  /** Nothing is dispatched any more: those that wait find that out. */
  stop(): void {
    for (const { begin } of this.#waiting.splice(0)) begin();
  }
}
