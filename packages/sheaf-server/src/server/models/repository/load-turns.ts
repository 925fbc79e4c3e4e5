/** The most first loads at once. */
const places = 4;
/** A load that takes longer, or never ends, no longer keeps others waiting. */
const longestTurnMs = 30_000;

type EndTurn = () => void;

interface Waiting {
  readonly takes: number;
  begin(): void;
}

/**
 * Orders a folder's loads: up to four first loads at once; a load that replaces a model runs alone, so that at most one model is in
 * memory twice.
 */
export class LoadTurns {
  #free = places;
  readonly #waiting: Waiting[] = [];

  /** Resolves when a load may begin, in the order asked for. */
  async next({ isReplacement }: { readonly isReplacement: boolean }): Promise<EndTurn> {
    const takes = isReplacement ? places : 1;
    await new Promise<void>((begin) => {
      this.#waiting.push({ takes, begin });
      this.#begin();
    });
    let isOver = false;
    const end = (): void => {
      clearTimeout(timer);
      if (isOver) return;
      isOver = true;
      this.#free += takes;
      this.#begin();
    };
    const timer = setTimeout(end, longestTurnMs);
    timer.unref();
    return end;
  }

  #begin(): void {
    for (let [first] = this.#waiting; first !== undefined && first.takes <= this.#free; [first] = this.#waiting) {
      this.#waiting.shift();
      this.#free -= first.takes;
      first.begin();
    }
  }
}
