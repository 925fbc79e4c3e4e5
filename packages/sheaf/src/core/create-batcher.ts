import { auto } from "../policies/auto/index.ts";
import { assembleBatcher } from "./assemble-batcher.ts";
import type { Batcher, Result } from "./contract/batcher.ts";
import type { BatchFunction, Executor } from "./contract/executor.ts";
import type { BatcherOptions } from "./contract/options.ts";

/**
 * Makes a batcher over a batch function or an executor.
 * @throws {TypeError | RangeError} for a wrong option; the message quotes its value.
 */
export function createBatcher<In, Out, OnMissing extends "undefined" | "error" = "undefined" | "error">(
  run: BatchFunction<In, Out> | Executor<In, Out>,
  options: BatcherOptions<In, Out> & { readonly onMissing?: OnMissing | undefined } = {},
): Batcher<In, [OnMissing] extends ["error"] ? Exclude<Result<Out>, undefined> : Result<Out>> {
  return assembleBatcher(run, options, auto) as never;
}
