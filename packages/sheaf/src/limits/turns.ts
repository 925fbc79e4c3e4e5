import type { Amounts } from "../core/contract/rate-limit.ts";

/** A batch that waits for the limit, until that moment. */
interface Want {
  readonly items: number;
  readonly weight: number;
  readonly endsAtMs: number;
}

/** One who could go and does not, because its policy holds, keeps no other waiting for longer. */
const patienceMs = 1000;

/** The place of one batcher. */
export class Turn {
  /** Is called when it may go earlier than it was told. */
  readonly wake: () => void;
  /** Weight it has had, from a common start. */
  served = 0;
  want: Want | undefined;

  constructor(wake: () => void) {
    this.wake = wake;
  }
}

/** The batchers at one limit. They take turns in weight: the one that has had the least goes first. */
export class Turns {
  readonly #all = new Set<Turn>();
  /** Service that the one served last had had before: one that comes back starts there. */
  #start = 0;

  get size(): number {
    return this.#all.size;
  }

  join(wake: () => void): Turn {
    const turn = new Turn(wake);
    this.#all.add(turn);
    return turn;
  }

  leave(turn: Turn): void {
    this.#all.delete(turn);
    this.wake();
  }

  /** It may go at that moment, which may be past. */
  look(turn: Turn, nowMs: number, readyAtMs: number, items: number, weight: number): void {
    turn.want = readyAtMs > nowMs ? { items, weight, endsAtMs: readyAtMs + patienceMs } : undefined;
  }

  went(turn: Turn, weight: number): void {
    turn.want = undefined;
    this.#start = Math.max(this.#start, turn.served);
    turn.served = this.#servedOf(turn) + Math.max(1, weight);
  }

  /** The amounts for which others wait that have had less. */
  ahead(turn: Turn, nowMs: number): Amounts {
    const ahead = { runs: 0, items: 0, weight: 0 };
    if (this.#all.size === 1) return ahead;
    const own = this.#servedOf(turn);
    for (const other of this.#all) {
      const { want } = other;
      if (other === turn || want === undefined || want.endsAtMs < nowMs || this.#servedOf(other) >= own) continue;
      ahead.runs++;
      ahead.items += want.items;
      ahead.weight += want.weight;
    }
    return ahead;
  }

  /** Whether one of them waits for the limit. */
  areWaiting(nowMs: number): boolean {
    for (const { want } of this.#all) if (want !== undefined && want.endsAtMs >= nowMs) return true;
    return false;
  }

  /** The limit has changed. */
  wake(): void {
    for (const turn of this.#all) if (turn.want !== undefined) turn.wake();
  }

  #servedOf(turn: Turn): number {
    return Math.max(turn.served, this.#start);
  }
}
