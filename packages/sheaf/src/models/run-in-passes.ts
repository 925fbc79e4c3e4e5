import { checkResults } from "../core/dispatch/run.ts";
import { systemClock, type Clock } from "../core/runtime/runtime.ts";
import type { PassCost } from "./pass-cost.ts";
import { planPasses, type PassLimits } from "./plan-passes.ts";

export interface PassOptions<In, Out> extends PassLimits {
  /** The length of each item, such as its tokens; each > 0. */
  readonly lengths: readonly number[];
  /** Runs the model once on some of the items; one result for each, in order. */
  readonly run: (items: In[]) => ArrayLike<Out | Error> | PromiseLike<ArrayLike<Out | Error>>;
  /** The cost of passes of this model. Keep it with the model: it learns from each pass. */
  readonly cost: Pick<PassCost, "of" | "learn">;
  /**
   * The `answer` of the batch's context: callers then get their results at the end of their pass, not of the batch.
   * @default none: all results come at the end
   */
  readonly answer?: ((index: number, result: Out | Error) => void) | undefined;
  /**
   * The `signal` of the batch's context: once every caller has left, no other pass begins.
   * @default none: every pass runs
   */
  readonly signal?: AbortSignal | undefined;
  /** @default the runtime's */
  readonly clock?: Clock | undefined;
}

/**
 * Runs a batch of items of different lengths in passes of similar length, short ones first, cut so that the expected time is least,
 * and learns from the time of each pass.
 * @returns the results in the order of the items. With `answer`, those of the last pass are answered by what is returned.
 * @throws the error of a pass: items of the passes before it keep their answers. The reason of `signal`. {RangeError} `lengths` has
 * another length than `items`. {BatcherError} `RESULT_COUNT` when a pass does not give one result for each of its items.
 * @experimental It may change in any minor version.
 */
export async function runInPasses<In, Out>(
  items: readonly In[],
  { lengths, run, cost, answer, signal, clock = systemClock, maxPaddedLength }: PassOptions<In, Out>,
): Promise<(Out | Error)[]> {
  if (lengths.length !== items.length)
    throw new RangeError(`lengths must have one number for each of ${items.length} items, got ${lengths.length}`);
  const passes = planPasses(lengths, cost, { maxPaddedLength });
  const results: (Out | Error)[] = [];
  for (const [number, indices] of passes.entries()) {
    if (signal?.aborted === true) throw signal.reason;
    const startedAtMs = clock.now();
    const returned = await run(indices.map((index) => items[index]!));
    const passResults = checkResults(returned, indices.length, "a pass") as ArrayLike<Out | Error>;
    const longest = indices.reduce((most, index) => Math.max(most, lengths[index]!), 0);
    cost.learn(indices.length, longest, clock.now() - startedAtMs);
    const isLast = number === passes.length - 1;
    indices.forEach((index, place) => {
      results[index] = passResults[place]!;
      // Those of the last pass are answered by what is returned.
      if (!isLast) answer?.(index, passResults[place]!);
    });
  }
  return results;
}
