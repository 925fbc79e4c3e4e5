/** Of the last replies, how many count. */
const memory = 32;

/**
 * Whether the replies of a model are mostly JSON, or bytes: its workers write rows as JSON only where that is read. JSON
 * until replies say otherwise.
 */
export class JsonDemand {
  #share = 1;

  /** One reply more. */
  note(isJson: boolean): void {
    this.#share += ((isJson ? 1 : 0) - this.#share) / memory;
  }

  readonly isHigh = (): boolean => this.#share > 0.5;
}
