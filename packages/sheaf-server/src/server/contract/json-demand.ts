/** Number of recent replies that count. */
const memory = 32;

/**
 * Tracks whether a model's replies are mostly JSON or binary, so that its workers encode rows as JSON only if that is used. Starts
 * with JSON.
 */
export class JsonDemand {
  #share = 1;

  note(isJson: boolean): void {
    this.#share += ((isJson ? 1 : 0) - this.#share) / memory;
  }

  readonly isHigh = (): boolean => this.#share > 0.5;
}
