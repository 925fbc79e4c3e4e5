import { auto } from "../policies/auto/index.ts";
import { assembleBatcher } from "./assemble-batcher.ts";
import type { Batcher, Result } from "./contract/batcher.ts";
import type { BatchFunction, Executor } from "./contract/executor.ts";
import type { BatcherOptions } from "./contract/options.ts";

/**
 * Makes a batcher over a batch function or an executor. With `onMissing: "error"` a result is never undefined.
 * @throws {TypeError | RangeError} for a wrong option; the message quotes its value.
 * @example
 * const embed = createBatcher(async (texts: string[]) => (await api.embed(texts)).vectors, { maxBatchSize: 100 });
 * const vector = await embed("hello");
 */
export function createBatcher<In, Out, Missing extends "undefined" | "error" = "undefined" | "error">(
  run: BatchFunction<In, Out> | Executor<In, Out>,
  options: BatcherOptions<In, Out> & { readonly onMissing?: Missing | undefined } = {},
): Batcher<In, [Missing] extends ["error"] ? Exclude<Result<Out>, undefined> : Result<Out>> {
  return assembleBatcher(run, options, auto) as Batcher<In, never>;
}
