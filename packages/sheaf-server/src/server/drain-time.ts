import type { BatchRecord } from "sheaf";

const shortestMs = 10;
const longestMs = 60_000;
/** Before the first batch. */
const guessedMs = 1000;
const memory = 0.9;

/** Estimates how long waiting items take to leave, from the run time an item has cost lately. */
export class DrainTime {
  readonly #slots: number;
  #msPerItem: number | undefined;

  constructor(slots: number) {
    this.#slots = slots;
  }

  observe({ runMs, size }: BatchRecord): void {
    const msPerItem = runMs / size;
    this.#msPerItem = memory * (this.#msPerItem ?? msPerItem) + (1 - memory) * msPerItem;
  }

  /** From 10 ms to a minute. */
  estimateMs(waiting: number): number {
    if (this.#msPerItem === undefined) return guessedMs;
    return Math.min(longestMs, Math.max(shortestMs, Math.ceil((waiting * this.#msPerItem) / this.#slots)));
  }
}
