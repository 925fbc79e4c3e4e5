/** How much of a server one tenant may use, besides its turns. */
export interface TenantBounds {
  /**
   * Items a second, a second's worth at once.
   * @default none
   */
  readonly itemsPerSecond?: number | undefined;
  /**
   * Weight a second, such as tokens, where the model weighs its items; elsewhere an item weighs 1.
   * @default none
   */
  readonly weightPerSecond?: number | undefined;
  /**
   * Items that wait or run at once.
   * @default none
   */
  readonly itemsInFlight?: number | undefined;
}

/** Why items may not come now. */
export interface OverBound {
  readonly reason: string;
  /** Until they may. */
  readonly waitMs: number;
}

/** A token bucket that holds a second's worth. A request that is larger needs a full one, and leaves it in debt. */
class Bucket {
  #level: number | undefined;
  #atMs = 0;

  /** Until so much may be taken, in milliseconds. */
  waitMs(amount: number, perSecond: number, nowMs: number): number {
    const missing = Math.min(amount, capacityOf(perSecond)) - this.#levelAt(perSecond, nowMs);
    return missing < roundingError ? 0 : Math.ceil((1000 * missing) / perSecond);
  }

  take(amount: number, perSecond: number, nowMs: number): void {
    this.#level = this.#levelAt(perSecond, nowMs) - amount;
    this.#atMs = nowMs;
  }

  isFull(perSecond: number, nowMs: number): boolean {
    return this.#levelAt(perSecond, nowMs) === capacityOf(perSecond);
  }

  #levelAt(perSecond: number, nowMs: number): number {
    const most = capacityOf(perSecond);
    return Math.min(most, (this.#level ?? most) + ((nowMs - this.#atMs) * perSecond) / 1000);
  }
}

const capacityOf = (perSecond: number): number => Math.max(1, perSecond);
const roundingError = 1e-6;
/** Until the first answer is there. */
const guessedAnswerMs = 1000;

/** Holds a tenant, or all tenants of a key, to its bounds. */
export class Meter {
  bounds: TenantBounds;
  /** Items that wait or run. */
  inFlight = 0;
  readonly #items = new Bucket();
  readonly #weight = new Bucket();
  /** Time of a request, a mean of the last ones. */
  #answerMs = guessedAnswerMs;

  constructor(bounds: TenantBounds) {
    this.bounds = bounds;
  }

  /** Why `items` more may not come now; undefined where they may. `weightOf` is called where weight counts. */
  overBound(items: number, weightOf: () => number, nowMs: number): OverBound | undefined {
    const { itemsPerSecond, weightPerSecond, itemsInFlight = Infinity } = this.bounds;
    // More at once than the bound can come when nothing else is there.
    if (this.inFlight > 0 && this.inFlight + items > itemsInFlight)
      return { reason: `at most ${itemsInFlight} items in flight, ${this.inFlight} are`, waitMs: this.#answerMs };
    const itemsMs = itemsPerSecond === undefined ? 0 : this.#items.waitMs(items, itemsPerSecond, nowMs);
    const weightMs = weightPerSecond === undefined ? 0 : this.#weight.waitMs(weightOf(), weightPerSecond, nowMs);
    if (itemsMs === 0 && weightMs === 0) return undefined;
    return itemsMs >= weightMs
      ? { reason: `${itemsPerSecond} items a second`, waitMs: itemsMs }
      : { reason: `a weight of ${weightPerSecond} a second`, waitMs: weightMs };
  }

  enter(items: number, weightOf: () => number, nowMs: number): void {
    const { itemsPerSecond, weightPerSecond } = this.bounds;
    this.inFlight += items;
    if (itemsPerSecond !== undefined) this.#items.take(items, itemsPerSecond, nowMs);
    if (weightPerSecond !== undefined) this.#weight.take(weightOf(), weightPerSecond, nowMs);
  }

  leave(items: number, tookMs: number): void {
    this.inFlight -= items;
    this.#answerMs += (tookMs - this.#answerMs) / 8;
  }

  /** Whether it knows nothing that a new one does not. */
  isIdle(nowMs: number): boolean {
    const { itemsPerSecond, weightPerSecond } = this.bounds;
    return (
      this.inFlight === 0 &&
      (itemsPerSecond === undefined || this.#items.isFull(itemsPerSecond, nowMs)) &&
      (weightPerSecond === undefined || this.#weight.isFull(weightPerSecond, nowMs))
    );
  }
}
