/** How much of a server one tenant may use, besides its turns. */
export interface TenantBounds {
  /**
   * Items per second; a second's worth may come at once.
   * @default none
   */
  readonly itemsPerSecond?: number | undefined;
  /**
   * Weight per second, such as tokens, if the model weighs its items; otherwise an item weighs 1.
   * @default none
   */
  readonly weightPerSecond?: number | undefined;
  /** Most items that wait or run. * @default none */
  readonly itemsInFlight?: number | undefined;
}

export interface OverBound {
  readonly reason: string;
  /** Time until they may come. */
  readonly waitMs: number;
}

/** A tenant's bulk leaves this share of a bound to its live calls, or their recent need if that is more. */
const leastForLive = 0.1;
/** At most this share is kept for live calls. */
const mostForLive = 0.95;
/** Half-life of the peak need of live calls. */
const halfLifeMs = 60_000;

/** The recent peak need of live calls, which bulk leaves to them. */
class LiveNeed {
  #most = 0;
  #atMs = 0;

  note(amount: number, nowMs: number): void {
    if (amount < this.#at(nowMs)) return;
    this.#most = amount;
    this.#atMs = nowMs;
  }

  of(bound: number, nowMs: number): number {
    return Math.min(mostForLive * bound, Math.max(leastForLive * bound, this.#at(nowMs)));
  }

  #at(nowMs: number): number {
    return this.#most * 2 ** ((this.#atMs - nowMs) / halfLifeMs);
  }
}

/**
 * A token bucket that holds a second's worth. A larger request needs a full bucket and leaves it in debt. Bulk leaves what live calls
 * need and has its own debt; live calls may use everything in the bucket.
 */
class Bucket {
  #level: number | undefined;
  #bulkDebt = 0;
  #atMs = 0;
  readonly #need = new LiveNeed();
  /** Use by live calls in this second. */
  #second = 0;
  #secondBeganAtMs = 0;

  /** Time until `amount` may be taken, in milliseconds. */
  waitMs(amount: number, perSecond: number, nowMs: number, isBulk: boolean): number {
    this.#fill(perSecond, nowMs);
    const wanted = isBulk ? amount + this.#need.of(capacityOf(perSecond), nowMs) : amount;
    const missing = Math.min(wanted, capacityOf(perSecond)) - this.#level! + (isBulk ? this.#bulkDebt : 0);
    return missing < roundingError ? 0 : Math.ceil((1000 * missing) / perSecond);
  }

  take(amount: number, perSecond: number, nowMs: number, isBulk: boolean): void {
    this.#fill(perSecond, nowMs);
    if (isBulk) {
      const paid = Math.max(0, Math.min(amount, this.#level! - this.#need.of(capacityOf(perSecond), nowMs)));
      this.#level! -= paid;
      this.#bulkDebt += amount - paid;
      return;
    }
    this.#level! -= amount;
    if (nowMs - this.#secondBeganAtMs >= 1000) {
      this.#second = 0;
      this.#secondBeganAtMs = nowMs;
    }
    this.#need.note((this.#second += amount), nowMs);
  }

  isFull(perSecond: number, nowMs: number): boolean {
    this.#fill(perSecond, nowMs);
    return this.#level === capacityOf(perSecond) && this.#bulkDebt === 0;
  }

  /** Inflow goes to live calls first; the rest pays bulk's debt. */
  #fill(perSecond: number, nowMs: number): void {
    const most = capacityOf(perSecond);
    const flowed = (this.#level ?? most) + ((nowMs - this.#atMs) * perSecond) / 1000;
    this.#atMs = nowMs;
    const paid = Math.max(0, Math.min(this.#bulkDebt, flowed - this.#need.of(most, nowMs)));
    this.#bulkDebt -= paid;
    this.#level = Math.min(most, flowed - paid);
  }
}

const capacityOf = (perSecond: number): number => Math.max(1, perSecond);
const roundingError = 1e-6;
/** Assumed until the first answer. */
const guessedAnswerMs = 1000;

/** Enforces the bounds of a tenant, or of all tenants of a key. */
export class Meter {
  bounds: TenantBounds;
  /** Items that wait or run. */
  inFlight = 0;
  /** Those of them that are bulk. */
  #bulkInFlight = 0;
  readonly #liveInFlight = new LiveNeed();
  readonly #items = new Bucket();
  readonly #weight = new Bucket();
  /** Mean duration of recent requests. */
  #answerMs = guessedAnswerMs;

  constructor(bounds: TenantBounds) {
    this.bounds = bounds;
  }

  /** Why `items` more may not come now; undefined if they may. `weightOf` is called only if weight counts. */
  overBound(items: number, weightOf: () => number, nowMs: number, isBulk = false): OverBound | undefined {
    const { itemsPerSecond, weightPerSecond, itemsInFlight = Infinity } = this.bounds;
    const forLive = itemsInFlight === Infinity ? 0 : this.#liveInFlight.of(itemsInFlight, nowMs);
    // A large bulk request that came alone may hold more than bulk's part; it takes nothing from live calls.
    const bulk = isBulk ? this.#bulkInFlight : Math.min(this.#bulkInFlight, itemsInFlight - forLive);
    const others = this.inFlight - this.#bulkInFlight + bulk;
    const most = isBulk ? Math.max(1, itemsInFlight - forLive) : itemsInFlight;
    const held = isBulk ? Math.max(bulk, others - forLive) : others;
    // A request larger than the bound may come if nothing else is there.
    if (held > 0 && held + items > most) {
      const reason = isBulk
        ? `at most ${Math.floor(most)} bulk items in flight, so that live ones find room; ${this.#bulkInFlight} are, and ${this.inFlight} in all`
        : `at most ${itemsInFlight} items in flight, ${this.inFlight} are`;
      return { reason, waitMs: this.#answerMs };
    }
    const itemsMs = itemsPerSecond === undefined ? 0 : this.#items.waitMs(items, itemsPerSecond, nowMs, isBulk);
    const weightMs =
      weightPerSecond === undefined ? 0 : this.#weight.waitMs(weightOf(), weightPerSecond, nowMs, isBulk);
    if (itemsMs === 0 && weightMs === 0) return undefined;
    return itemsMs >= weightMs
      ? { reason: `${itemsPerSecond} items a second`, waitMs: itemsMs }
      : { reason: `a weight of ${weightPerSecond} a second`, waitMs: weightMs };
  }

  enter(items: number, weightOf: () => number, nowMs: number, isBulk = false): void {
    const { itemsPerSecond, weightPerSecond } = this.bounds;
    this.goes(items, isBulk);
    if (!isBulk) this.#liveInFlight.note(this.inFlight - this.#bulkInFlight, nowMs);
    if (itemsPerSecond !== undefined) this.#items.take(items, itemsPerSecond, nowMs, isBulk);
    if (weightPerSecond !== undefined) this.#weight.take(weightOf(), weightPerSecond, nowMs, isBulk);
  }

  /** Adds `items` that wait or run; a negative number removes them. */
  goes(items: number, isBulk: boolean): void {
    this.inFlight += items;
    if (isBulk) this.#bulkInFlight += items;
  }

  leave(items: number, tookMs: number, isBulk = false): void {
    this.goes(-items, isBulk);
    this.#answerMs += (tookMs - this.#answerMs) / 8;
  }

  /** Whether it equals a new one and can be dropped. */
  isIdle(nowMs: number): boolean {
    const { itemsPerSecond, weightPerSecond } = this.bounds;
    return (
      this.inFlight === 0 &&
      (itemsPerSecond === undefined || this.#items.isFull(itemsPerSecond, nowMs)) &&
      (weightPerSecond === undefined || this.#weight.isFull(weightPerSecond, nowMs))
    );
  }
}
