/** A result and how it came about. */
export interface NatsDetailedResult<Out> {
  readonly value: Out;
  /** Items in the batch that it rode in. */
  readonly batchSize: number;
  /** Call → start of its batch: the whole time without the run. Milliseconds. */
  readonly queueMs: number;
  /** The run of its batch, as its worker measured it. Milliseconds. */
  readonly runMs: number;
  /** Which delivery was answered; 1 unless a worker was lost. */
  readonly deliveries: number;
}
