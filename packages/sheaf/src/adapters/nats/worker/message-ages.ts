/**
 * Half the time that the smallest difference is remembered: for so long a jump of the server's clock may look like age.
 */
const sliceMs = 10_000;

/**
 * How long ago the server stored a message, though its clock and this machine's need not agree: the smallest difference
 * seen lately is their offset (plus the fastest delivery), and anything above it is age. Where even that one had
 * waited, ages come out too small. They come out too large only for a while after the server's clock was set back.
 */
export class MessageAges {
  readonly #longestMs: number;
  #smallest = Infinity;
  #smallestBefore = Infinity;
  #sliceEndsAtMs = -Infinity;

  /** Nothing is older than `longestMs`: a greater age means that a clock was set. */
  constructor(longestMs: number) {
    this.#longestMs = longestMs;
  }

  /** Times of the server's clock, and of a monotonic one here; in milliseconds. */
  ageMs(storedAtMs: number, nowMs: number): number {
    const difference = nowMs - storedAtMs;
    if (difference - this.#offset > this.#longestMs) this.#smallest = this.#smallestBefore = Infinity;
    if (nowMs >= this.#sliceEndsAtMs) {
      this.#smallestBefore = this.#sliceEndsAtMs > nowMs - 2 * sliceMs ? this.#smallest : Infinity;
      this.#smallest = Infinity;
      this.#sliceEndsAtMs = nowMs + sliceMs;
    }
    this.#smallest = Math.min(this.#smallest, difference);
    return difference - this.#offset;
  }

  get #offset(): number {
    return Math.min(this.#smallest, this.#smallestBefore);
  }
}
