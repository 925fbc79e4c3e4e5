/** Requests that must be right before a larger one is tried again. */
const rightBefore = 2000;
/** An estimate may be a little too low. */
const tokenMargin = 0.9;

/** The most items and weight that a service takes in one request, learned from those it refuses as too large. */
export class SizeCaps {
  items: number = Infinity;
  weight: number = Infinity;
  #right = 0;

  /** A request was accepted. After many, a cap that was guessed is doubled. */
  accepted(): void {
    if (this.items === Infinity && this.weight === Infinity) return;
    if (++this.#right < rightBefore) return;
    this.#right = 0;
    this.items *= 2;
    this.weight *= 2;
  }

  /**
   * A request of several items was refused as too large. `named` is the limit that the service named.
   * @returns whether smaller requests will follow.
   */
  refused(size: number, weight: number, { items, tokens, counted }: NamedCap): boolean {
    if (size <= 1) return false;
    this.#right = 0;
    if (items !== undefined && items >= 1 && items < size) this.items = Math.min(this.items, items);
    // Weights are estimates: a share of this one, where the service tells its count.
    else if (tokens !== undefined)
      this.weight = Math.min(this.weight, (tokenMargin * weight * tokens) / (counted ?? 2 * tokens)); // prettier-ignore
    else this.items = Math.min(this.items, Math.floor(size / 2));
    return true;
  }
}

/** The limit in a service's words; both undefined where it names none. */
export interface NamedCap {
  readonly items: number | undefined;
  readonly tokens: number | undefined;
  /** The tokens that it counted. */
  readonly counted: number | undefined;
}
