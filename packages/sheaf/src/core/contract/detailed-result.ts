/** The result of one item, and how it came about. Times in milliseconds. */
export interface DetailedResult<Out> {
  readonly value: Out;
  /** Of its batch, as the batch function sees it. */
  readonly batchId: number;
  /** Items in that batch; after a bisection, in the batch that failed. */
  readonly batchSize: number;
  /** Call → dispatch; 0 for a call that joined a running one. */
  readonly queueMs: number;
  /** The run of its batch, as its record has it; where a bisection isolated its failures, dispatch → result. */
  readonly runMs: number;
}
