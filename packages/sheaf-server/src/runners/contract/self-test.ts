/** A model's results for single items, compared with its results in batches. */
export interface SelfTest {
  /**
   * `"independent"`: the same. `"slightly-dependent"`: an item's numbers differ by up to 5 %, as those of dynamically
   * quantised models do. `"dependent"`: by more, or whole numbers, texts or lengths change. `"not-deterministic"`: an item
   * alone gives another result each time, so that batches cannot be compared.
   */
  readonly verdict: "independent" | "slightly-dependent" | "dependent" | "not-deterministic";
  /**
   * The largest difference as a share of its output's largest value; Infinity where a whole number, a text or a length
   * changed.
   */
  readonly differenceRate: number;
}
