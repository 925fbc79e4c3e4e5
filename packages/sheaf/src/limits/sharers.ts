/** Amounts of one run, or of several; `output` is a part of the weight. */
export interface Ahead {
  readonly runs: number;
  readonly items: number;
  readonly weight: number;
  readonly output: number;
}

/** A batch that waits for the limit; it counts until `endsAtMs`. */
interface Want {
  readonly items: number;
  readonly weight: number;
  readonly output: number;
  readonly endsAtMs: number;
  readonly isBulk: boolean;
  /** It goes behind live calls. */
  readonly yields: boolean;
}

/** A batcher that may go but is held by its policy blocks the others for no longer than this. */
const patienceMs = 1000;

/** One of the batchers at a limit. */
export class Sharer {
  /** Called when it may go earlier than it was told. */
  readonly wake: () => void;
  /** Weight it has received, counted from a common start. */
  served = 0;
  want: Want | undefined;

  constructor(wake: () => void) {
    this.wake = wake;
  }
}

/** The batchers at one limit. They take turns in weight: the one that has had the least goes first. */
export class Sharers {
  readonly #all = new Set<Sharer>();
  /** What the last one served had received before; a batcher that returns starts from there. */
  #start = 0;

  get size(): number {
    return this.#all.size;
  }

  join(wake: () => void): Sharer {
    const sharer = new Sharer(wake);
    this.#all.add(sharer);
    return sharer;
  }

  leave(sharer: Sharer): void {
    this.#all.delete(sharer);
    this.wake();
  }

  /** Notes when it may go; the moment may have passed. */
  look(sharer: Sharer, nowMs: number, readyAtMs: number, want: Omit<Want, "endsAtMs">): void {
    sharer.want = readyAtMs > nowMs ? { ...want, endsAtMs: readyAtMs + patienceMs } : undefined;
  }

  went(sharer: Sharer, weight: number): void {
    sharer.want = undefined;
    this.#start = Math.max(this.#start, sharer.served);
    sharer.served = this.#servedOf(sharer) + Math.max(1, weight);
  }

  /** What goes first: the amounts of others that have had less, or that do not yield while this one does. */
  ahead(sharer: Sharer, nowMs: number, yields: boolean): Ahead {
    const ahead = { runs: 0, items: 0, weight: 0, output: 0 };
    if (this.#all.size === 1) return ahead;
    const own = this.#servedOf(sharer);
    for (const other of this.#all) {
      const { want } = other;
      if (other === sharer || want === undefined || want.endsAtMs < nowMs) continue;
      if (want.yields === yields ? this.#servedOf(other) >= own : want.yields) continue;
      ahead.runs++;
      ahead.items += want.items;
      ahead.weight += want.weight;
      ahead.output += want.output;
    }
    return ahead;
  }

  /** Whether one of them waits for the limit, with live calls or with bulk. */
  areWaiting(nowMs: number, bulk: boolean): boolean {
    for (const { want } of this.#all)
      if (want !== undefined && want.isBulk === bulk && want.endsAtMs >= nowMs) return true;
    return false;
  }

  /** The limit has changed. */
  wake(): void {
    for (const sharer of this.#all) if (sharer.want !== undefined) sharer.wake();
  }

  #servedOf(sharer: Sharer): number {
    return Math.max(sharer.served, this.#start);
  }
}
