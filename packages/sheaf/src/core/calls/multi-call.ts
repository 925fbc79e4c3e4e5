import type { DetailedResult } from "../contract/detailed-result.ts";
import type { Chunk, MultiCallEntry } from "../queue/chunks/chunk.ts";

/** The calls of one caller, settled together; each has its settler at its index. */
export type MultiCall = (index: number) => MultiCallEntry;

/** `many`: all results; rejects with the first error, while the other items run on. */
export function manyCall<Out>(
  size: number,
  resolve: (results: Out[]) => void,
  reject: (error: unknown) => void,
): MultiCall {
  const collect = collectorOf(size, resolve);
  return (index) => ({ fulfil: (value) => collect(index, value as Out), reject });
}

/** `settle` and `settleDetailed`: every outcome, with `valueOf` each result; never rejects. */
export const settleCall =
  <Out>(valueOf: (...outcome: Parameters<MultiCallEntry["fulfil"]>) => Out) =>
  (size: number, resolve: (outcomes: PromiseSettledResult<Out>[]) => void): MultiCall => {
    const collect = collectorOf(size, resolve);
    return (index) => ({
      fulfil: (...outcome) => collect(index, { status: "fulfilled", value: valueOf(...outcome) }),
      reject: (reason) => collect(index, { status: "rejected", reason }),
    });
  };

function collectorOf<T>(size: number, resolve: (values: T[]) => void): (index: number, value: T) => void {
  const values = new Array<T>(size);
  let left = size;
  return (index, value) => {
    values[index] = value;
    if (--left === 0) resolve(values);
  };
}

/** The result that `detailed` gives, made from the chunk of the batch in which the item runs. */
export function detailedResultOf<Out>(value: unknown, chunk: Chunk, index: number, nowMs: number): DetailedResult<Out> {
  const { batchId, size, startedAtMs, runMs = nowMs - startedAtMs } = chunk.run!;
  const queueMs = Math.max(0, startedAtMs - chunk.arrivedAtMs(index));
  return { value: value as Out, batchId, batchSize: size, queueMs, runMs };
}
