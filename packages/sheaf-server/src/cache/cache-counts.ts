/** What a part of the cache has done since it was opened, and holds now. */
export interface CacheCounts {
  /** Items answered without a run. */
  hits: number;
  /** Items that had to run, or that joined an equal one in flight. */
  misses: number;
  /** Runs that the hits would have taken: each its share of the run that made its result. */
  savedRuns: number;
  evictions: number;
  items: number;
  /** Keys and results, as estimated. */
  bytes: number;
  /** Time spent on keys and on finding results. */
  hitMs: number;
  missMs: number;
}

export const noCounts = (): CacheCounts => ({
  hits: 0,
  misses: 0,
  savedRuns: 0,
  evictions: 0,
  items: 0,
  bytes: 0,
  hitMs: 0,
  missMs: 0,
});

/** A model's part of the cache, seen from outside. */
export interface CachePart {
  readonly counts: CacheCounts;
  /** The longest age of a result that is given; undefined: any. */
  readonly ttlMs: number | undefined;
}
