import type { Terms } from "./entry.ts";

/** One whose caller may leave. */
export interface Watched {
  readonly terms: Terms;
  readonly hasLeft: boolean;
}

/** So many deadlines of settled entries are kept, and more where they are less than half. */
const leastKept = 64;

/** The deadlines of those who wait or run, in order. Most come in order; that of one who has settled stays for a while. */
export class Deadlines<T extends Watched> {
  #atMs: number[] = [];
  #entries: T[] = [];
  /** Those before it are over. */
  #head = 0;
  /** Entries here that have settled, or have another deadline. */
  #over = 0;

  /** The first deadline, `Infinity` without one. */
  get firstAtMs(): number {
    return this.#first() === undefined ? Infinity : this.#atMs[this.#head]!;
  }

  add(entry: T): void {
    const { deadlineAtMs } = entry.terms;
    let at = this.#atMs.length;
    if (at > this.#head && this.#atMs[at - 1]! > deadlineAtMs) at = this.#placeOf(deadlineAtMs);
    if (at === this.#atMs.length) {
      this.#atMs.push(deadlineAtMs);
      this.#entries.push(entry);
    } else {
      this.#atMs.splice(at, 0, deadlineAtMs);
      this.#entries.splice(at, 0, entry);
    }
  }

  /** The entry whose deadline is the first, if that has come by `nowMs`. */
  due(nowMs: number): T | undefined {
    const entry = this.#first();
    return entry !== undefined && this.#atMs[this.#head]! <= nowMs ? entry : undefined;
  }

  /** An entry has settled, or has another deadline. */
  left(): void {
    if (++this.#over < Math.max(leastKept, this.#entries.length / 2)) return;
    const entries = this.#entries.filter((entry, index) => this.#isLive(entry, index));
    this.#atMs = entries.map(({ terms }) => terms.deadlineAtMs);
    this.#entries = entries;
    this.#head = this.#over = 0;
  }

  #first(): T | undefined {
    const entries = this.#entries;
    while (this.#head < entries.length && !this.#isLive(entries[this.#head]!, this.#head)) this.#head++;
    return entries[this.#head];
  }

  #isLive({ hasLeft, terms }: T, index: number): boolean {
    return !hasLeft && terms.deadlineAtMs === this.#atMs[index];
  }

  /** Behind those of the same moment. */
  #placeOf(atMs: number): number {
    let low = this.#head;
    let high = this.#atMs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#atMs[middle]! <= atMs) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
