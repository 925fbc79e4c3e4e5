import { compareResults, type OutputDifferences } from "./compare-results.ts";

/** A model's results for single items, compared with its results in batches. */
export interface SelfTest {
  /**
   * `"independent"`: the same. `"slightly-dependent"`: an item's numbers differ by up to 2 %, as those of dynamically
   * quantised text models do. `"dependent"`: by more, or whole numbers, texts or lengths change. `"not-deterministic"`: an item
   * alone gives another result each time, so that batches cannot be compared.
   */
  readonly verdict: "independent" | "slightly-dependent" | "dependent" | "not-deterministic";
  /**
   * The largest difference as a share of its output's largest value; Infinity where a whole number, a text or a length
   * changed.
   */
  readonly differenceRate: number;
}

/** Rounding: float32 results alone and in a batch differ by less. */
export const largestSteadyRate: number = 1e-3;
/** Above it, a result in a batch is another result. */
const largestSlightRate = 0.02;
const largestMix = 8;

export interface SelfTestOptions {
  /**
   * Most items in a run.
   * @default 8, which is the most that it uses
   */
  readonly maxBatchSize?: number | undefined;
  /**
   * Further inputs that callers may send, as different from the items as can be: they share runs with the items, whose results must
   * not change by it. One that fails alone is left out.
   * @default none
   * @example
   * selfTest(run, items, { neighbours: [items[0].map((number) => 1e6 * number)] });
   */
  readonly neighbours?: readonly unknown[] | undefined;
}

type Run = (items: readonly unknown[]) => Promise<ArrayLike<unknown>>;

/**
 * Runs each item alone, twice, and then all of them in several mixed batches, where every item has several places. At most
 * `3 * items.length + 4` runs, 13 for three items, and three for each of the `neighbours`.
 * @throws {Error} the error of a run; a run that does not give one result for each item.
 * @experimental It may change in any minor version.
 */
export async function selfTest(
  run: (items: readonly unknown[]) => Promise<ArrayLike<unknown>>,
  items: readonly unknown[],
  { maxBatchSize = largestMix, neighbours = [] }: SelfTestOptions = {},
): Promise<SelfTest> {
  const alone = await runAlone(run, items);
  const unsteady = new Map(changes(compareResults(pairsOf(alone, await runAlone(run, items)))));
  if (maxBatchSize === 1) return verdictOf(new Map(), unsteady);

  const mixes = mixesOf(items.length).map((mix) => mix.slice(0, maxBatchSize));
  /** By output: how far it differed, for each mix in which it did. */
  const found = new Map<string, number[]>();
  const compared = (mix: readonly number[], together: readonly unknown[]): void => {
    const pairs = mix.map((item, position) => [alone[item], together[position]] as const);
    for (const [output, rate] of changes(compareResults(pairs, alone)))
      found.set(output, [...(found.get(output) ?? []), rate]);
  };
  let first: readonly unknown[] = [];
  for (const mix of mixes) {
    const together = await runMix(run, items, mix);
    if (mix === mixes[0]) first = together;
    compared(mix, together);
  }
  const [order] = mixesOf(items.length);
  const beside = order!.slice(0, maxBatchSize - 1);
  for (const neighbour of neighbours) {
    if (!(await passesAlone(run, neighbour))) continue;
    const others = beside.map((item) => items[item]);
    compared(beside, (await runBatch(run, [neighbour, ...others], 0)).slice(1));
    compared(beside, (await runBatch(run, [...others, neighbour], others.length)).slice(0, -1));
  }
  // A difference in one mix alone is chance, such as an item that rounds the other way.
  const repeated = new Map(
    [...found].filter(([, rates]) => rates.length > 1).map(([output, rates]) => [output, Math.max(...rates)]),
  );
  if (repeated.size > 0) {
    // Before blaming batches: two runs alone may have agreed by chance.
    const again = pairsOf(alone, await runAlone(run, items));
    const firstAgain = pairsOf(first, await runMix(run, items, mixes[0]!));
    for (const [output, rate] of changes(compareResults([...again, ...firstAgain]))) unsteady.set(output, rate);
  }
  for (const output of unsteady.keys()) repeated.delete(output);
  return verdictOf(repeated, unsteady);
}

function verdictOf(dependent: ReadonlyMap<string, number>, unsteady: ReadonlyMap<string, number>): SelfTest {
  if (dependent.size > 0) {
    const differenceRate = Math.max(...dependent.values());
    return { verdict: differenceRate > largestSlightRate ? "dependent" : "slightly-dependent", differenceRate };
  }
  if (unsteady.size > 0) return { verdict: "not-deterministic", differenceRate: Math.max(...unsteady.values()) };
  return { verdict: "independent", differenceRate: 0 };
}

/** The order of the items, its reverse, and a longer batch in which each item has others beside it. */
function mixesOf(count: number): number[][] {
  const order = Array.from({ length: count }, (_, i) => i);
  const longer = Array.from({ length: largestMix }, (_, i) => (i + 1 + Math.floor(i / count)) % count);
  return [order, order.toReversed(), longer];
}

async function runAlone(run: Run, items: readonly unknown[]): Promise<unknown[]> {
  const results: unknown[] = [];
  for (const item of items) results.push((await runBatch(run, [item]))[0]);
  return results;
}

const runMix = (run: Run, items: readonly unknown[], mix: readonly number[]): Promise<unknown[]> =>
  runBatch(
    run,
    mix.map((item) => items[item]),
  );

const passesAlone = (run: Run, item: unknown): Promise<boolean> =>
  runBatch(run, [item]).then(
    () => true,
    () => false,
  );

/** `free`: a place that may fail. */
async function runBatch(run: Run, items: readonly unknown[], free?: number): Promise<unknown[]> {
  const results = Array.from(await run(items));
  if (results.length !== items.length) throw new Error(`${results.length} results for ${items.length} items`);
  for (const [place, result] of results.entries()) if (result instanceof Error && place !== free) throw result;
  return results;
}

const pairsOf = (ones: readonly unknown[], others: readonly unknown[]): (readonly [unknown, unknown])[] =>
  ones.map((one, i) => [one, others[i]] as const);

const changes = (differences: OutputDifferences): [string, number][] =>
  [...differences].filter(([, rate]) => rate > largestSteadyRate);
