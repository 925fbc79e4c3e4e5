/** What a model answers alone against what it answers in a batch. */
export interface SelfTest {
  /** The largest difference between the two, as a share of the largest value; 0 for models without numbers. */
  readonly differenceRate: number;
}

/** Above this share results depend on their batch-mates; float32 alone against in a batch stays below a thousandth of it. */
export const largestSteadyRate: number = 1e-3;

/**
 * Runs each item alone, then all in one batch, and compares. Models with dynamic int8 quantisation show themselves here:
 * their scale is that of the whole batch.
 * @throws {Error} what a run throws.
 */
export async function selfTest(
  run: (items: readonly unknown[]) => Promise<ArrayLike<unknown>>,
  items: readonly unknown[],
): Promise<SelfTest> {
  const alone: number[][] = [];
  for (const item of items) alone.push(numbersOf((await run([item]))[0]));
  const together = Array.from(await run(items), numbersOf);
  if (together.length !== items.length) throw new Error(`${together.length} results for ${items.length} items`);
  let largest = 0;
  let difference = 0;
  alone.forEach((numbers, i) => {
    if (numbers.length !== together[i]?.length) throw new Error("a result's shape is another in a batch than alone");
    numbers.forEach((value, j) => {
      largest = Math.max(largest, Math.abs(value));
      difference = Math.max(difference, Math.abs(value - (together[i]?.[j] ?? NaN)));
    });
  });
  return { differenceRate: largest === 0 ? 0 : difference / largest };
}

/** Every floating-point number of a result; typed arrays of whole numbers and texts are left out. */
function numbersOf(result: unknown): number[] {
  if (result instanceof Error) throw result;
  if (typeof result === "number") return Number.isFinite(result) ? [result] : [];
  if (result instanceof Float32Array || result instanceof Float64Array)
    return Array.from(result).filter(Number.isFinite);
  if (typeof result !== "object" || result === null || ArrayBuffer.isView(result)) return [];
  return Object.values(result).flatMap(numbersOf);
}
