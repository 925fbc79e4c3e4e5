/** Half the memory of the smallest difference. */
const sliceMs = 60_000;

/**
 * How long ago the server stored a message, though its clock and this machine's need not agree: the smallest difference
 * seen lately is their offset (plus the quickest way), and what is above it is age. Where even that one had waited, ages
 * come out too small, never too large: nothing is taken for expired that is not.
 */
export class Ages {
  #smallest = Infinity;
  #smallestBefore = Infinity;
  #sliceEndsAtMs = -Infinity;

  /** Both in milliseconds since 1970, of two clocks. */
  ageMs(storedAtMs: number, nowMs: number): number {
    if (nowMs >= this.#sliceEndsAtMs) {
      this.#smallestBefore = this.#sliceEndsAtMs > nowMs - 2 * sliceMs ? this.#smallest : Infinity;
      this.#smallest = Infinity;
      this.#sliceEndsAtMs = nowMs + sliceMs;
    }
    const difference = nowMs - storedAtMs;
    this.#smallest = Math.min(this.#smallest, difference);
    return difference - Math.min(this.#smallest, this.#smallestBefore);
  }
}
