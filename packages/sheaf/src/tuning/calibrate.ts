import { check, checkCount, checkNames, checkPositive, integerFrom } from "../shared/checks.ts";
import { systemClock, type Clock } from "../core/runtime/runtime.ts";
import { checkResults } from "../core/dispatch/run.ts";
import type { BatchFunction, Executor } from "../core/contract/executor.ts";
import { BaseRunHandle } from "../core/contract/base-run-handle.ts";
import { defined, type Given } from "../shared/defined.ts";
import { fitLine, type MeasuredCost } from "./cost-line.ts";

export interface CalibrateOptions<In> {
  /** The item number i; called again for every item, so vary it as your traffic varies. */
  readonly sample: (index: number) => In;
  /**
   * Batch sizes to measure; integers >= 1.
   * @default 1, 2, 4, 8, 16, 32
   */
  readonly sizes?: readonly number[] | undefined;
  /**
   * Batches in flight to measure; integers >= 1.
   * @default 1, and the executor's slots where it has more
   */
  readonly concurrency?: readonly number[] | undefined;
  /**
   * Stop once every median is known to this share (95 % confidence); > 0.
   * @default 0.02
   */
  readonly targetError?: number | undefined;
  /**
   * Stop after this long in any case; at least `minRounds` rounds are measured.
   * @default 20000
   */
  readonly maxMs?: number | undefined;
  /**
   * Unmeasured runs of every size first; integer >= 0.
   * @default 2
   */
  readonly warmUpRounds?: number | undefined;
  /**
   * Integer >= 1.
   * @default 7
   */
  readonly minRounds?: number | undefined;
  /**
   * Integer >= minRounds.
   * @default 200
   */
  readonly maxRounds?: number | undefined;
  /** @default the system's */
  readonly clock?: Clock | undefined;
  /** @default none */
  readonly onProgress?: ((progress: { readonly round: number; readonly share: number }) => void) | undefined;
  /**
   * Aborting it ends the calibration with its reason after the run in progress, whose own signal aborts too.
   * @default none
   */
  readonly signal?: AbortSignal | undefined;
}

/** One size at one concurrency. */
export interface CalibrationRow {
  readonly concurrency: number;
  readonly size: number;
  /** Median run time of one batch. */
  readonly runMs: number;
  /** Half of the 95 % interval of that median, as a share of it. */
  readonly errorRate: number;
  /** Items a second with `concurrency` batches always in flight. */
  readonly itemsPerS: number;
  /** Batches measured. */
  readonly runs: number;
}

export interface Calibration {
  /** From concurrency 1 (or the lowest measured): the line, and the table it was fitted to. */
  readonly costModel: MeasuredCost;
  readonly rows: readonly CalibrationRow[];
  /** Smallest size, at the lowest concurrency, within 5 % of the most items a second. */
  readonly kneeSize: number;
  /** Concurrency within 5 % of the most items a second at the largest size. */
  readonly slots: number;
  readonly rounds: number;
  /** Largest `errorRate` of any row. */
  readonly errorRate: number;
}

const withinTheBest = 0.95;

/**
 * Measures run time by batch size. Every round runs each size once at each concurrency, in a new order, so that a slow moment of the
 * machine affects all of them. It stops once the error of the medians is small enough.
 * @throws {RangeError} for options out of range; the run's own error, or that of a single item, as it is.
 * @experimental It may change in any minor version.
 */
export async function calibrate<In, Out>(
  run: BatchFunction<In, Out> | Executor<In, Out>,
  options: CalibrateOptions<In>,
): Promise<Calibration> {
  const executor = typeof run === "function" ? undefined : run;
  const runBatch = (items: In[], handle: BaseRunHandle): ReturnType<BatchFunction<In, Out>> =>
    typeof run === "function" ? run(items, handle) : run.run(items, handle);
  const settings = settingsOf(options, executor?.slots ?? 1);
  const { clock, signal, sample, onProgress } = settings;
  await executor?.ready();

  const cells = settings.concurrency.flatMap((concurrency) =>
    settings.sizes.map((size) => ({ concurrency, size, runsMs: [] as number[], roundsMs: [] as number[] })),
  );
  const startAtMs = clock.now();
  let itemIndex = 0;
  let batchId = 0;
  const abort = new AbortController();
  const onAbort = (): void => abort.abort(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });

  async function runOnce(size: number): Promise<number> {
    const items = Array.from({ length: size }, () => sample(itemIndex++));
    const handle = new BaseRunHandle(++batchId, size, abort.signal);
    const startedAtMs = clock.now();
    const results = await runBatch(items, handle);
    const elapsedMs = clock.now() - startedAtMs;
    // The keys do not matter here.
    const values =
      results instanceof Map ? [...results.values()] : checkResults(results, size, "calibrate", handle.unanswered());
    // If items fail, the time is that of reaching the error, not of the work.
    for (let i = 0; i < values.length; i++) if (values[i] instanceof Error) throw values[i] as Error;
    return handle.runMs ?? elapsedMs;
  }

  let round = 0;
  try {
    for (round = -settings.warmUpRounds; round < settings.maxRounds; round++) {
      for (const cell of inOrder(cells, round + settings.warmUpRounds)) {
        signal?.throwIfAborted();
        const startedAtMs = clock.now();
        const runsMs = await Promise.all(Array.from({ length: cell.concurrency }, () => runOnce(cell.size)));
        if (round < 0) continue;
        cell.roundsMs.push(clock.now() - startedAtMs);
        for (const runMs of runsMs) cell.runsMs.push(runMs);
      }
      const elapsedMs = clock.now() - startAtMs;
      onProgress?.({ round: Math.max(0, round + 1), share: Math.min(1, elapsedMs / settings.maxMs) });
      if (round + 1 < settings.minRounds) continue;
      const precise = cells.every(({ runsMs }) => medianError(runsMs) <= settings.targetError);
      if (precise || elapsedMs >= settings.maxMs) {
        round++;
        break;
      }
    }
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }

  const rows = cells.map(({ concurrency, size, runsMs, roundsMs }) => ({
    concurrency,
    size,
    runMs: median(runsMs),
    errorRate: medianError(runsMs),
    itemsPerS: (1000 * concurrency * size) / Math.max(median(roundsMs), Number.EPSILON),
    runs: runsMs.length,
  }));
  return summaryOf(rows, round);
}

function summaryOf(rows: readonly CalibrationRow[], rounds: number): Calibration {
  const lowest = Math.min(...rows.map(({ concurrency }) => concurrency));
  const alone = rows.filter(({ concurrency }) => concurrency === lowest);
  const table = alone.map(({ size, runMs, errorRate }) => [size, runMs, errorRate] as const).sort(([a], [b]) => a - b);
  const firstNearBest = <Row extends CalibrationRow>(candidates: readonly Row[]): Row => {
    const best = Math.max(...candidates.map(({ itemsPerS }) => itemsPerS));
    return candidates.find(({ itemsPerS }) => itemsPerS >= withinTheBest * best)!;
  };
  const largest = table.at(-1)![0];
  const bySize = alone.toSorted((a, b) => a.size - b.size);
  const byConcurrency = rows.filter(({ size }) => size === largest).sort((a, b) => a.concurrency - b.concurrency);
  return {
    costModel: { ...fitLine(table), table },
    rows,
    kneeSize: firstNearBest(bySize).size,
    slots: firstNearBest(byConcurrency).concurrency,
    rounds,
    errorRate: Math.max(...rows.map(({ errorRate }) => errorRate)),
  };
}

/** Rounds start at different sizes and alternate direction, so that no size always follows the same one. */
function inOrder<T>(cells: readonly T[], round: number): T[] {
  const from = round % cells.length;
  const rotated = [...cells.slice(from), ...cells.slice(0, from)];
  return round % 2 === 0 ? rotated : rotated.reverse();
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Half of the 95 % interval of the median by order statistics, as a share of it: it assumes no distribution. */
function medianError(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = 0.98 * Math.sqrt(sorted.length);
  const low = sorted[Math.max(0, Math.floor(sorted.length / 2 - half))]!;
  const high = sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length / 2 + half) - 1)]!;
  return high === low ? 0 : (high - low) / 2 / Math.max(median(sorted), Number.EPSILON);
}

type Settings<In> = Required<Given<Omit<CalibrateOptions<In>, "onProgress" | "signal">>> &
  Pick<CalibrateOptions<In>, "onProgress" | "signal">;

function settingsOf<In>(options: CalibrateOptions<In>, slots: number): Settings<In> {
  const defaults: Omit<Settings<In>, "sample" | "onProgress" | "signal"> = {
    sizes: [1, 2, 4, 8, 16, 32],
    concurrency: slots > 1 ? [1, slots] : [1],
    targetError: 0.02,
    maxMs: 20_000,
    warmUpRounds: 2,
    minRounds: 7,
    maxRounds: 200,
    clock: systemClock,
  };
  checkNames(options, { ...defaults, sample: true, signal: true, onProgress: true });
  const settings: Settings<In> = { ...defaults, ...defined(options) };
  check(typeof settings.sample === "function", "sample", "a function (index) => item", settings.sample, TypeError);
  for (const name of ["sizes", "concurrency"] as const) {
    const list: unknown = settings[name];
    check(Array.isArray(list) && list.length >= 1, name, "a list of integers >= 1", list);
    (list as unknown[]).forEach((value, i) => checkCount(`${name}[${i}]`, value));
  }
  checkPositive("targetError", settings.targetError);
  checkPositive("maxMs", settings.maxMs);
  integerFrom(0)("warmUpRounds", settings.warmUpRounds);
  checkCount("minRounds", settings.minRounds);
  integerFrom(settings.minRounds)("maxRounds", settings.maxRounds);
  return settings;
}
