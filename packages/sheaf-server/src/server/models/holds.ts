import { within } from "sheaf/internal";

/** Counts requests that enter item by item: their model stays open until the last item is in. */
export class Holds {
  #count = 0;
  #released: (() => void) | undefined;

  /** @returns a function that ends the hold, once. */
  hold(): () => void {
    this.#count++;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      if (--this.#count === 0) this.#released?.();
    };
  }

  /** Resolves when there are no holds, or after `graceMs`. */
  async released(graceMs: number): Promise<void> {
    if (this.#count === 0 || graceMs <= 0) return;
    await within(new Promise<void>((resolve) => (this.#released = resolve)), graceMs);
  }
}
