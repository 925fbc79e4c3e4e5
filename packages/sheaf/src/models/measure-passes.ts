import { systemClock, type Clock } from "../core/runtime/runtime.ts";
import { checkCount, checkSpan } from "../shared/checks.ts";
import type { PassCost } from "./pass-cost.ts";

export interface MeasurePassesOptions {
  /** Longest length that the model takes; integer >= 1. */
  readonly maxLength: number;
  /**
   * Most items of a pass; integer >= 1.
   * @default 32
   */
  readonly maxSize?: number | undefined;
  /**
   * Time for all passes together; the last may end a little later. Milliseconds > 0.
   * @default 300
   */
  readonly budgetMs?: number | undefined;
  /** @default the runtime's */
  readonly clock?: Clock | undefined;
}

/** Single items of growing length, and several short ones. */
const shapes: readonly (readonly [size: number, length: number])[] = [
  [1, 16],
  [1, 64],
  [8, 16],
  [1, 128],
  [32, 16],
  [1, 256],
  [8, 64],
  [1, 512],
];
const mostRounds = 3;

/**
 * Teaches a cost the times of common passes when a model starts: `run` runs the model once on `size` dummy items of length `length`.
 * The first pass does not count, the second always does, and passes that would exceed the budget are left out.
 * @experimental It may change in any minor version.
 */
export async function measurePasses(
  cost: Pick<PassCost, "of" | "learn">,
  run: (size: number, length: number) => PromiseLike<unknown>,
  { maxLength, maxSize = 32, budgetMs = 300, clock = systemClock }: MeasurePassesOptions,
): Promise<void> {
  checkCount("maxLength", maxLength);
  checkCount("maxSize", maxSize);
  checkSpan("budgetMs", budgetMs);
  const fitting = shapes
    .map(([size, length]) => [Math.min(size, maxSize), Math.min(length, maxLength)] as const)
    .filter(([size, length], at, all) => all.findIndex(([s, l]) => s === size && l === length) === at);
  const endAtMs = clock.now() + budgetMs;
  await run(...fitting[0]!);
  let isFirst = true;
  for (let round = 0; round < mostRounds; round++)
    for (const [size, length] of fitting) {
      const startedAtMs = clock.now();
      // Before the first pass the expected time is a guess.
      if (!isFirst && startedAtMs + cost.of(size, length) > endAtMs) continue;
      isFirst = false;
      await run(size, length);
      cost.learn(size, length, clock.now() - startedAtMs);
    }
}
