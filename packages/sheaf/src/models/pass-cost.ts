/** How long a pass takes, in milliseconds, by its number of items and the length to which each is padded. */
export interface PassCosts {
  of(size: number, length: number): number;
}

/** Levels by padded length (size × length), one for each octave, and by length, one for two octaves. */
const paddedLevels = 21;
const lengthLevels = 8;
/** A pass teaches the grid points within about an octave, … */
const paddedWidth = 0.6;
const lengthWidth = 0.75;
/** … and a little about all others: how fast this machine is, … */
const elsewhere = 0.01;
/** … and how its speed changes: this share of an unexpected time moves all points. */
const commonShare = 0.1;
/** Roughly how many passes each point remembers. */
const memory = 16;
/** From the second pass at a place on, one moves its level by at most this factor, before it is averaged: 1.35. */
const largestStep = 0.3;
const passesToTrust = 2;

/** The initial guess: a fixed part worth 16 positions, and attention, which doubles the cost of a position at 2,048. */
const fixedLength = 16;
const attentionLength = 2048;
const guessMsPerPosition = 0.1;

/**
 * Learns how long passes take on this machine, including the fixed part, the cost per position, and caches that large passes
 * overflow. It keeps a level (the logarithm of measured ÷ guessed time) at each point of a grid over padded length and length; a pass
 * moves the points near it. Memory is bounded (3 kB), and a single slow pass hardly matters.
 * @experimental It may change in any minor version.
 */
export class PassCost implements PassCosts {
  readonly #levels: Float64Array = new Float64Array(paddedLevels * lengthLevels);
  readonly #weights: Float64Array = new Float64Array(paddedLevels * lengthLevels);
  #passes = 0;

  /** Expected milliseconds of a pass of `size` items (integer >= 1) that are padded to `length` (> 0). */
  of(size: number, length: number): number {
    const x = placeOf(size * length, 1, paddedLevels);
    const y = placeOf(length, 0.5, lengthLevels);
    const [column, row] = [Math.min(Math.floor(x), paddedLevels - 2), Math.min(Math.floor(y), lengthLevels - 2)];
    const [right, below] = [x - column, y - row];
    const at = row * paddedLevels + column;
    const levels = this.#levels;
    const above = levels[at]! + right * (levels[at + 1]! - levels[at]!);
    const under = levels[at + paddedLevels]! + right * (levels[at + paddedLevels + 1]! - levels[at + paddedLevels]!);
    return guessMs(size, length) * Math.exp(above + below * (under - above));
  }

  /** A pass of `size` items, padded to `length`, took `ms`. Times that are not > 0 are ignored. */
  learn(size: number, length: number, ms: number): void {
    if (!(size >= 1) || !(length > 0) || !(ms > 0) || ms === Infinity) return;
    const seen = Math.log(ms / guessMs(size, length));
    const off = Math.log(ms / this.of(size, length));
    const common = this.#passes++ < passesToTrust ? 0 : commonShare * bounded(off);
    const x = placeOf(size * length, 1, paddedLevels);
    const y = placeOf(length, 0.5, lengthLevels);
    for (let row = 0; row < lengthLevels; row++) {
      const nearRow = Math.exp(-0.5 * ((row - y) / lengthWidth) ** 2);
      for (let column = 0; column < paddedLevels; column++) {
        const near = elsewhere + nearRow * Math.exp(-0.5 * ((column - x) / paddedWidth) ** 2);
        const at = row * paddedLevels + column;
        const weight = this.#weights[at]!;
        const level = this.#levels[at]! + common;
        const step = weight < passesToTrust ? seen - level : bounded(seen - level);
        this.#levels[at] = level + (near / (weight + near)) * step;
        this.#weights[at] = Math.min(memory, weight + near);
      }
    }
  }
}

const bounded = (step: number): number => Math.max(-largestStep, Math.min(largestStep, step));

const guessMs = (size: number, length: number): number =>
  guessMsPerPosition * (fixedLength + size * length * (1 + length / attentionLength));

/** Where a value stands on a logarithmic axis, within its ends. */
const placeOf = (value: number, perOctave: number, count: number): number =>
  Math.max(0, Math.min(count - 1, perOctave * Math.log2(value)));
