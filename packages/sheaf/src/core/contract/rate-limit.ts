/**
 * A limit on dispatch: at most this many in any period of `perMs` milliseconds, whenever it begins. All of them may go at
 * once; if more than that wants to go, starts are spread over the period. A limit per second and one per day are two of
 * these, in an array.
 */
export interface RateLimit {
  /**
   * Runs per `perMs`; a retry that the batch function reports counts too.
   * @default no limit
   */
  readonly runs?: number | undefined;
  /**
   * Items per `perMs`.
   * @default no limit
   */
  readonly items?: number | undefined;
  /**
   * Weight per `perMs`; needs `weigh`.
   * @default no limit
   * @see BatcherOptions.weigh
   */
  readonly weight?: number | undefined;
  /** Length of the period in milliseconds. Required. */
  readonly perMs: number;
}

/** A limit that several batchers share; `createRateLimit()` makes one. */
export interface SharedRateLimit {
  /** A place for one batcher more. `wake` is called when it may go earlier than it was told. */
  join(wake: () => void): RateLimitSeat;
  /** As `stats().rateLimit` of each of its batchers. */
  stats(): RateLimitStats;
}

/** Amounts of one run, or of several. */
export interface Amounts {
  readonly runs: number;
  readonly items: number;
  readonly weight: number;
}

/** One batcher's place at a limit. Times are those of the batcher's clock, in milliseconds. */
export interface RateLimitSeat {
  /** A heavier batch of several items could never go. */
  readonly maxWeight: number;
  /** The most that the next batch should hold: what may go now, unless that is hardly anything. `isBulk`: it holds bulk only. */
  room(nowMs: number, isBulk: boolean): Pick<Amounts, "items" | "weight">;
  /** What a batch with live calls may take along of bulk. */
  fill(nowMs: number): Pick<Amounts, "items" | "weight">;
  /**
   * The moment from which a batch of that size may go; in the past when it may go now. `first`: its first item, for a limit that
   * counts more of a batch of one than its weight.
   */
  readyAtMs(nowMs: number, items: number, weight: number, isBulk: boolean, first?: unknown): number;
  /** Whether a bulk batch of that size has waited long enough to go before live calls. */
  isBulkDue(nowMs: number, items: number, weight: number): boolean;
  /** Counts a run that was started; it may leave a debt. `bulkRate` is the part of its items that are bulk. */
  spend(nowMs: number, items: number, weight: number, bulkRate: number, first?: unknown): void;
  /** Adds `weight`, which may be negative, to the estimate of the last run. */
  correct(nowMs: number, weight: number): void;
  /** Nothing goes for `durationMs`. */
  pause(nowMs: number, durationMs: number): void;
  /** End of the latest pause. */
  readonly resumesAtMs: number;
  /** Length of the pauses since then, with the rest of the one that is going on. */
  pausedMsSince(atMs: number): number;
  /** The batcher has closed. */
  leave(): void;
  /** `stats().rateLimit` of the batcher. */
  stats(nowMs: number): RateLimitStats;
}

/** The belief about one limit. */
export interface RateLimitFigures {
  /** The limit in a minute; null where none is known. */
  readonly perMinute: number | null;
  /** The amount that could go at once; negative for a debt, null where no limit is known. */
  readonly left: number | null;
  /** The most that could ever go at once; null where no limit is known. */
  readonly holds: number | null;
  /** Counted so far; less again where a run weighed less than was estimated. */
  readonly used: number;
}

/** The limit of a batcher, or the one that it shares. */
export interface RateLimitStats {
  readonly runs: RateLimitFigures;
  readonly items: RateLimitFigures;
  readonly weight: RateLimitFigures;
  /** Of a service that limits the tokens of requests and answers apart; otherwise undefined. */
  readonly input?: RateLimitFigures | undefined;
  readonly output?: RateLimitFigures | undefined;
  /** This process's part of the limit, where processes share it; else 1. */
  readonly share: number;
  /** Runs that the service refused for their rate. */
  readonly refused: number;
  /** Milliseconds for which nothing went because the service asked for it. */
  readonly pausedMs: number;
}
