import type { Chunk } from "../queue/chunk.ts";

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

/** The result that `detailed` gives, made from the chunk of the batch in which the item runs. */
export function detailedResultOf<Out>(value: unknown, chunk: Chunk, index: number, nowMs: number): DetailedResult<Out> {
  const { batchId, size, startedAtMs, runMs = nowMs - startedAtMs } = chunk.run!;
  const queueMs = Math.max(0, startedAtMs - chunk.arrivedAtMs(index));
  return { value: value as Out, batchId, batchSize: size, queueMs, runMs };
}
