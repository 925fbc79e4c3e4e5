import type { DetailedResult } from "../../../core/contract/batcher.ts";

/** A result and how it came about: as any batcher's, but its run time is the worker's and its queue wait all the rest. */
export interface NatsDetailedResult<Out> extends DetailedResult<Out> {
  /** Which delivery was answered; 1 unless a worker was lost. */
  readonly deliveries: number;
}
