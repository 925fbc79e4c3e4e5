/** How the clients of a simulation or a load test fared. */
export interface SimulatedGoodput {
  /** Attempts ÷ operations. */
  readonly attemptsPerOperation: number;
  /** By second: operations that began. */
  readonly begunPerS: readonly number[];
  /** By second: answers that came while their client waited. */
  readonly answeredPerS: readonly number[];
  /**
   * After a surge: the time from its end until answers ÷ begun operations, second by second, stay at 0.95 of their share before it
   * for 3 s. `Infinity` if they never do.
   */
  readonly recoveryMs: number | undefined;
}

const binMs = 250;
const binsPerS = 1000 / binMs;

/** Counts operations and answers in time, by moments >= 0 in milliseconds. */
export class Goodput {
  readonly #surge: { readonly atMs: number; readonly forMs: number } | undefined;
  readonly #begun: number[] = [];
  readonly #answered: number[] = [];

  /** `surge`: the time in which there is more load than before and after. */
  constructor(surge: { readonly atMs: number; readonly forMs: number } | undefined) {
    this.#surge = surge;
  }

  begun(atMs: number): void {
    count(this.#begun, atMs);
  }

  answered(atMs: number): void {
    count(this.#answered, atMs);
  }

  result(operations: number, attempts: number): SimulatedGoodput {
    return {
      attemptsPerOperation: operations > 0 ? attempts / operations : 0,
      begunPerS: bySecond(this.#begun),
      answeredPerS: bySecond(this.#answered),
      recoveryMs: this.#recoveryMs(),
    };
  }

  #recoveryMs(): number | undefined {
    if (this.#surge === undefined) return undefined;
    const { atMs, forMs } = this.#surge;
    const endBin = Math.ceil((atMs + forMs) / binMs);
    const before = this.#share(0, Math.floor(atMs / binMs));
    let since = endBin;
    // Nothing begins after the last call, so the bins after it are left out.
    for (let bin = endBin; bin + binsPerS <= this.#begun.length; bin++) {
      if (this.#share(bin, bin + binsPerS) < 0.95 * before) since = bin + 1;
      else if (bin - since >= 2 * binsPerS) return Math.max(0, since * binMs - atMs - forMs);
    }
    return Infinity;
  }

  #share(from: number, to: number): number {
    const sum = (bins: readonly number[]): number => bins.slice(from, to).reduce((total, n) => total + n, 0);
    return sum(this.#answered) / sum(this.#begun);
  }
}

function count(bins: number[], atMs: number): void {
  const bin = Math.floor(atMs / binMs);
  while (bins.length <= bin) bins.push(0);
  bins[bin]!++;
}

function bySecond(bins: readonly number[]): number[] {
  return Array.from({ length: Math.ceil(bins.length / binsPerS) }, (_, second) =>
    bins.slice(second * binsPerS, (second + 1) * binsPerS).reduce((sum, n) => sum + n, 0),
  );
}
