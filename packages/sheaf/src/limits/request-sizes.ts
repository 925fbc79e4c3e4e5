/** The size of one request, as it was estimated when it was sent. */
export interface RequestSize {
  readonly items: number;
  readonly tokens: number;
  /** Of its texts in UTF-8. */
  readonly bytes: number;
}

export type Dimension = keyof RequestSize;

/** What a refusal's message says about the limit. */
export interface NamedLimit {
  readonly dimension: Dimension;
  readonly most: number;
  /** The service's count of the request's tokens, if the message has it. */
  readonly counted?: number | undefined;
}

const dimensions: readonly Dimension[] = ["items", "tokens", "bytes"];
/** Possible error of counts; counts of items are exact. */
const tolerance: RequestSize = { items: 0, tokens: 0.1, bytes: 0.02 };
/** Requests stay this far below a refused size, since counts may be wrong. */
const margin: RequestSize = { items: 0, tokens: 0.02, bytes: 0.005 };
/** Above this ratio, the largest size that passed and the smallest refused one count as equal. */
const closeEnough: RequestSize = { items: 0.99, tokens: 0.97, bytes: 0.97 };
/** Requests that must pass before a larger one is tried; twice as many after each try that was refused. */
const firstPatience = 100;
const longestPatience = 1000;
/** Factor by which a limit that was found is exceeded to test it. */
const widening = 1.25;
/** Refused sizes kept; a smaller one replaces all larger ones. */
const maxKept = 16;

interface Refused {
  readonly size: RequestSize;
  readonly named: NamedLimit | undefined;
}

/** The bounds between which the limit in one dimension lies. */
interface Bounds {
  readonly passed: number;
  readonly refused: number;
  /** The limit that the service's message names. */
  readonly named: number | undefined;
}

/**
 * The size of the requests that a service takes, learned from those that pass and those that it refuses. It may limit items,
 * tokens or bytes: each of them of which nothing as large has passed can explain a refusal, and the first of these counts as
 * the limit until a request passes that contradicts it. Halving finds the limit between the largest size that passed and the
 * smallest that was refused, with one larger request at a time. After that an occasional larger request shows whether the
 * service takes more by now.
 */
export class RequestSizes {
  #passed: RequestSize = { items: 0, tokens: 0, bytes: 0 };
  #refused: Refused[] = [];
  #bounds: Readonly<Partial<Record<Dimension, Bounds>>> = {};
  #isTrying = false;
  #passedSince = 0;
  #patience = firstPatience;

  /** The most that the next request may hold: more than the last ones if it is to test a larger size. */
  get most(): RequestSize {
    return this.#isTryDue ? each((dimension) => this.#triedIn(dimension)) : this.#known;
  }

  /** The most of each dimension that has passed in a request. */
  get passing(): RequestSize {
    return this.#passed;
  }

  /** Whether something was refused for its size. */
  get isLimited(): boolean {
    return this.#refused.length > 0;
  }

  /** Whether a request is larger than what is known to pass; false while nothing was refused. */
  exceeds(size: RequestSize): boolean {
    const most = this.#known;
    return dimensions.some((dimension) => size[dimension] > most[dimension] * (1 + margin[dimension]));
  }

  /** Whether this request, which exceeds what is known to pass, is the test of that size. Call `tried` when it has ended. */
  tries(size: RequestSize): boolean {
    if (!this.#isTryDue) return false;
    const { most } = this;
    if (dimensions.some((dimension) => size[dimension] > most[dimension] * (1 + tolerance[dimension]))) return false;
    return (this.#isTrying = true);
  }

  tried(): void {
    this.#isTrying = false;
  }

  /** Whether its size may explain why a request was refused: nothing as large has passed. */
  mayBeTooLarge(size: RequestSize): boolean {
    return dimensions.some((dimension) => this.#explains(dimension, size));
  }

  passed(size: RequestSize): void {
    this.#passedSince++;
    const passed = this.#passed;
    // Refused requests that are no larger were refused for another reason.
    const plausible = this.#refused.filter((kept) => !isWithin(kept.size, size));
    const isContradicted = plausible.length < this.#refused.length;
    if (isContradicted) this.#patience = firstPatience;
    else if (isWithin(size, passed)) return;
    this.#refused = plausible;
    this.#passed = each((dimension) => Math.max(passed[dimension], size[dimension]));
    if (isContradicted || plausible.length > 0) this.#find();
  }

  /** A request was refused, and all of its items passed in parts; `parts` is the most of each dimension in one of them. */
  refused(size: RequestSize, parts: RequestSize, named: NamedLimit | undefined): void {
    if (this.#isTrying && this.#isSettled) this.#patience = Math.min(longestPatience, 2 * this.#patience);
    this.#passedSince = 0;
    // The message is about something else.
    if (named !== undefined && this.mayBeTooLarge(size) && !this.#explains(named.dimension, size)) {
      named = undefined;
      this.#refused = this.#refused.map((kept) => ({ size: kept.size, named: undefined }));
    }
    // Nothing as large passes any more; or the count was a little wrong.
    const isTightened = !this.mayBeTooLarge(size);
    this.#passed = each((dimension) => {
      const passed = this.#passed[dimension];
      if (passed < size[dimension] || (!isTightened && !this.#explains(dimension, size))) return passed;
      return isTightened ? parts[dimension] : Math.max(parts[dimension], (1 - margin[dimension]) * size[dimension]);
    });
    const isSmaller = (kept: Refused): boolean =>
      dimensions.some((dimension) => kept.size[dimension] < size[dimension]);
    this.#refused = [...this.#refused.filter(isSmaller).slice(1 - maxKept), { size, named }];
    this.#find();
  }

  /** Finds the limits that the refusals prove. */
  #find(): void {
    const found: Partial<Record<Dimension, Bounds>> = {};
    this.#refused = this.#refused.filter(({ size, named }) => {
      const explaining = dimensions.filter((dimension) => this.#explains(dimension, size));
      const dimension = explaining.find((each) => each === named?.dimension) ?? explaining[0];
      if (dimension === undefined) {
        // The service takes more than it did.
        this.#patience = firstPatience;
        return false;
      }
      const { refused: before = Infinity, named: namedBefore } = found[dimension] ?? {};
      const passed = this.#passed[dimension];
      const refused = Math.min(before, size[dimension]);
      const most = named?.dimension === dimension ? named.most : namedBefore;
      const holds = most !== undefined && most < refused && most >= passed / (1 + tolerance[dimension]);
      found[dimension] = { passed, refused, named: holds ? most : undefined };
      return true;
    });
    this.#bounds = found;
  }

  #explains(dimension: Dimension, size: RequestSize): boolean {
    return size[dimension] > this.#passed[dimension] / (1 + tolerance[dimension]);
  }

  /** The size that is known, or was said, to pass. */
  get #known(): RequestSize {
    return each((dimension) => {
      const bounds = this.#bounds[dimension];
      if (bounds === undefined) return Infinity;
      const { passed, refused, named = 0 } = bounds;
      const below = 1 - margin[dimension];
      return Math.max(1, Math.min(Math.max(passed, below * named), below * refused));
    });
  }

  get #isSettled(): boolean {
    return dimensions.every((dimension) => this.#isSettledIn(dimension));
  }

  #isSettledIn(dimension: Dimension): boolean {
    const bounds = this.#bounds[dimension];
    if (bounds === undefined || bounds.named !== undefined) return true;
    const isNext = dimension === "items" && bounds.refused - bounds.passed <= 1;
    return isNext || bounds.passed >= closeEnough[dimension] * bounds.refused;
  }

  get #isTryDue(): boolean {
    if (this.#isTrying || this.#refused.length === 0) return false;
    return !this.#isSettled || this.#passedSince >= this.#patience;
  }

  /** The most of a request that tests a size. */
  #triedIn(dimension: Dimension): number {
    const bounds = this.#bounds[dimension];
    if (bounds === undefined) return Infinity;
    const { passed, refused, named } = bounds;
    // Far enough for a policy to fill it, and for a slightly wrong count to prove nothing.
    if (this.#isSettled) return Math.ceil(widening * (named ?? refused));
    if (this.#isSettledIn(dimension)) return Math.max(passed, named ?? 0);
    return dimension === "items" ? Math.floor((passed + refused) / 2) : (passed + refused) / 2;
  }
}

const isWithin = (size: RequestSize, most: RequestSize): boolean =>
  dimensions.every((dimension) => size[dimension] <= most[dimension]);

const each = (of: (dimension: Dimension) => number): RequestSize => ({
  items: of("items"),
  tokens: of("tokens"),
  bytes: of("bytes"),
});
