import type { Executor } from "sheaf";
import type { ModelInput } from "../runners/model-spec.ts";

/**
 * Runs batches of sizes 1, 2, 4 … maxBatchSize in turn, `batches` of them on every slot at once. Straight on the
 * executor: what a cold model takes must not teach the scheduler.
 */
export async function warmUp(
  executor: Executor<unknown, unknown>,
  item: unknown,
  { batches, maxBatchSize }: { readonly batches: number; readonly maxBatchSize: number },
): Promise<void> {
  const sizes: number[] = [];
  for (let size = 1; size < maxBatchSize; size *= 2) sizes.push(size);
  sizes.push(maxBatchSize);
  for (let batch = 0; batch < batches; batch++) {
    const size = sizes[batch % sizes.length]!;
    const runs = Array.from({ length: executor.slots }, (_, slot) => {
      const { signal } = new AbortController();
      return executor.run(new Array<unknown>(size).fill(item), { signal, batchId: -1 - slot, size, attempt: 1 });
    });
    for (const results of await Promise.all(runs)) {
      const failure = Array.from(results).find((result) => result instanceof Error);
      if (failure !== undefined) throw new Error(`Warm-up failed: ${failure.message}`, { cause: failure });
    }
  }
}

/** An item that every model of this input takes: a word, zeros, ones where an axis is free. */
export function warmUpItemOf(input: ModelInput): unknown {
  if (input.kind === "text") return "warm up";
  if (input.kind === "text-pair") return { query: "warm up", text: "warm up" };
  if (input.kind === "floats") return new Float32Array(input.length);
  return undefined;
}
