import type { Chunk, ListEntry } from "./chunk.ts";

/** The calls of one caller, settled together: `entry(index)` settles one of them. */
export interface List {
  entry(index: number): ListEntry;
}

/** `many`: all results; rejects with the first error, while the other items run on. */
export function manyList<Out>(size: number, resolve: (results: Out[]) => void, reject: (error: unknown) => void): List {
  const results = new Array<Out>(size);
  let left = size;
  return {
    entry: (index) => ({
      fulfil: (value) => {
        results[index] = value as Out;
        if (--left === 0) resolve(results);
      },
      reject,
    }),
  };
}

/** `settle` and `askAll`: every outcome, with `valueOf` each result; never rejects. */
export function settleList<Out>(
  size: number,
  resolve: (outcomes: PromiseSettledResult<Out>[]) => void,
  valueOf: (value: unknown, chunk: Chunk, index: number, nowMs: number) => Out = (value) => value as Out,
): List {
  const outcomes = new Array<PromiseSettledResult<Out>>(size);
  let left = size;
  const settle = (index: number, outcome: PromiseSettledResult<Out>): void => {
    outcomes[index] = outcome;
    if (--left === 0) resolve(outcomes);
  };
  return {
    entry: (index) => ({
      fulfil: (value, chunk, at, nowMs) =>
        settle(index, { status: "fulfilled", value: valueOf(value, chunk, at, nowMs) }),
      reject: (reason) => settle(index, { status: "rejected", reason }),
    }),
  };
}
