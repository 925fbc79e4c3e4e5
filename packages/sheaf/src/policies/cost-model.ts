/**
 * What a batch costs, as its batcher has measured it: one object for its policy, its load shedding and its statistics. It
 * changes with every batch. Times in milliseconds.
 */
export interface CostModel {
  /** Batches learned from; failed ones are not. */
  readonly batches: number;
  /** s(0): what a batch costs however few items it holds; exactly 0 where there is nothing to amortise. */
  readonly fixedMs: number;
  /** Upper end of the range that runs so far leave for `fixedMs`; the same without `weigh`. */
  readonly fixedMsAtMost: number;
  /** Slope of the line: the cost of one more item, of mean weight. */
  readonly perItemMs: number;
  /** The cost of one more unit of weight. 0 without `weigh`, and where weights do not explain run times. */
  readonly perWeightMs: number;
  /** Mean absolute error of a prediction, as a share of it; 0.1 until it is known. */
  readonly noise: number;
  /** `fixedMs + perItemMs · size`. */
  line(size: number): number;
  /**
   * s(size): the line, unless what batches of about this size took differs from it by more than two standard errors.
   * Beyond the sizes seen not less than straight on from the largest of them. 0 before the first batch.
   */
  at(size: number): number;
  /** Run time of `size` items of total weight `sum`, the heaviest `heaviest`; `at(size)` without weights. */
  of(size: number, sum: number, heaviest: number): number;
  /** Batches of about this size learned from, 0 … 20, slowly forgotten. */
  seen(size: number): number;
}

/** Sizes are grouped in buckets: `bucketOf` gives 0 … 63. */
const buckets = 64;

// Exact to 8, then four an octave that end at 10, 12, 14, 16, 20 …: a step in the cost at a multiple of 8 falls between two.
export const bucketOf = (size: number): number => {
  const below = size - 1;
  if (below < 8) return below < 0 ? 0 : below | 0;
  if (below >= 131_072) return buckets - 1;
  const octave = 31 - Math.clz32(below);
  return 8 + 4 * (octave - 3) + ((below >> (octave - 2)) & 3);
};

/** The next larger size worth asking `CostModel.at` about: 1 … 8, 10, 12, 14, 16, 20 …, the ends of its buckets. */
export const nextSize = (size: number): number => {
  if (size < 8) return Math.floor(size) + 1;
  const quarter = 2 ** (29 - Math.clz32(size));
  return (Math.floor(size / quarter) + 1) * quarter;
};
