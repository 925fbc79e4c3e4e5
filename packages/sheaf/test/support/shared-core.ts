import { seededRandom } from "../../dist/internal/tuning.js";

/** Spells in which a neighbour wants the core, and the pauses between them. */
const spellMs = [50, 300] as const;
/** Who wants the core at the same time gets it by turns of about so long; who has slept goes first, once. */
const turnMs = 3;
const stepMs = 0.25;

/** A processor core that a run shares with a neighbour and with the thread that parses requests; the same seed, the same times. */
export class SharedCore {
  /** Until then requests are parsed on it, too. */
  parsesUntilMs = 0;
  readonly #random: () => number;
  readonly #edges: number[] = [0];
  #left: number = turnMs;
  #endedAtMs = 0;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  isWanted(nowMs: number): boolean {
    const [least, most] = spellMs;
    while (this.#edges.at(-1)! <= nowMs)
      this.#edges.push(this.#edges.at(-1)! + least + (most - least) * this.#random());
    return nowMs < this.parsesUntilMs || this.#edges.findLastIndex((edge) => edge <= nowMs) % 2 === 1;
  }

  /** How long a run takes that needs the core for `cpuMs`. */
  runMs(cpuMs: number, startAtMs: number): number {
    this.#left = Math.min(turnMs, this.#left + (startAtMs - this.#endedAtMs) / 2);
    let nowMs = startAtMs;
    for (let left = cpuMs; left > 0; left -= stepMs) {
      const ranMs = Math.min(left, stepMs);
      if (this.isWanted(nowMs) && (this.#left -= ranMs) < 0) {
        nowMs += turnMs * (0.5 + this.#random());
        this.#left = turnMs * (0.5 + this.#random());
      }
      nowMs += ranMs;
    }
    this.#endedAtMs = nowMs;
    return nowMs - startAtMs;
  }
}
