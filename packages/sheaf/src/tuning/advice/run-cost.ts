import { momentsOf } from "../../core/measure/least-squares.ts";
import { fitWeights } from "../../core/measure/weight-fit.ts";
import { fitLine, type CostLine, type MeasuredPoint } from "../cost-line.ts";
import type { RecordedRun } from "../record/recording.ts";
import { runTimeOf } from "../recommend.ts";

/** What runs cost, as data: it goes to another thread. */
export interface RunCost {
  /** By size. */
  readonly line: CostLine;
  /** Where weights explain run times better: `perWeightMs` of the sum, or with `padded` of the heaviest times the size. */
  readonly byWeight:
    | { readonly fixedMs: number; readonly perItemMs: number; readonly perWeightMs: number; readonly padded: boolean }
    | undefined;
  /** Each further run in flight adds this share of the run time. */
  readonly contention: number;
  /** What runs cost with more than so many in flight, on average, is not known. */
  readonly mostInFlight: number;
  /** Run time ÷ the cost above, in the order of the record: slow runs come together. */
  readonly ratios: Float64Array;
  /** Sizes that several runs had. */
  readonly smallest: number;
  readonly largest: number;
}

/** Fewer say nothing about their scatter. */
export const leastRuns = 30;
/** Fewer runs of about one size say nothing about it. */
const leastOfSize = 5;
const mostFitted = 2000;
const mostOff = 0.1;
const mostRatios = 100_000;

/** @throws {RangeError} for fewer than 30 runs, or of one size only: the message says what is missing. */
export function runCostOf(runs: readonly RecordedRun[], isAhead: boolean): RunCost {
  if (runs.length < leastRuns)
    throw new RangeError(`it has ${runs.length} runs that ended well, and at least ${leastRuns} are needed`);
  const buckets = bucketsOf(runs);
  if (buckets.length < 2)
    throw new RangeError(
      `nearly all of the ${runs.length} runs had ${runs[buckets[0]?.[0] ?? 0]!.size} items: what other sizes cost is not known`,
    );
  // A batch that goes ahead waits in its worker, which is no cost: then a slot is busy for the run and the usual way there and back.
  const ways = runs.map(({ runMs, heldMs }) => heldMs - runMs).sort((a, b) => a - b);
  const wayMs = ways[ways.length >> 2]!;
  const busyMs = runs.map(({ runMs, heldMs }) => (isAhead ? runMs + Math.max(0, wayMs) : heldMs));
  const inFlight = inFlightOf(runs, busyMs);
  let contention: Contention = { rate: 0, most: 1 };
  let at: (run: RecordedRun) => number = () => 1;
  let line: CostLine = { fixedMs: 1, perItemMs: 0 };
  let byWeight: RunCost["byWeight"];
  // Size and contention in turn: each from what the other leaves.
  for (let round = 0; round < 6; round++) {
    const alone = busyMs.map((ms, i) => ms / (1 + contention.rate * (inFlight[i]! - 1)));
    line = lineOf(runs, alone, buckets);
    const stride = Math.max(1, Math.floor(runs.length / mostFitted));
    const fitted = runs
      .map((run, i) => ({ size: run.size, weight: run.weight, heaviest: run.heaviest, runMs: alone[i]! }))
      .filter((_, i) => i % stride === 0);
    const hasWeights = runs.some(({ weight, size }) => weight !== size);
    byWeight = hasWeights ? fitWeights(fitted) : undefined;
    at = costAt(line, byWeight);
    contention = contentionOf(
      inFlight,
      busyMs.map((ms, i) => ms / at(runs[i]!)),
    );
  }
  const ratios = runs.map(
    (run, i) => busyMs[i]! / Math.max(1e-6, at(run) * (1 + contention.rate * (inFlight[i]! - 1))),
  );
  return {
    line,
    byWeight,
    contention: contention.rate,
    mostInFlight: contention.most,
    ratios: Float64Array.from(ratios.slice(0, mostRatios)),
    smallest: Math.min(...buckets.map((own) => runs[own[0]!]!.size)),
    largest: Math.max(...buckets.map((own) => runs[own[0]!]!.size)),
  };
}

/** Milliseconds of a run by size and weights, alone. */
export function costAt(
  line: CostLine,
  byWeight: RunCost["byWeight"],
): (run: Pick<RecordedRun, "size" | "weight" | "heaviest">) => number {
  const bySize = runTimeOf(line);
  if (byWeight === undefined) return ({ size }) => bySize(size);
  const { fixedMs, perItemMs, perWeightMs, padded } = byWeight;
  return ({ size, weight, heaviest }) => fixedMs + perItemMs * size + perWeightMs * (padded ? heaviest * size : weight);
}

/** The places of runs of about one size: to 8 each size, then four an octave. */
function bucketsOf(runs: readonly RecordedRun[]): readonly (readonly number[])[] {
  const buckets = new Map<number, number[]>();
  runs.forEach(({ size }, i) => {
    const bucket = size <= 8 ? size : Math.floor(4 * Math.log2(size)) + 100;
    const own = buckets.get(bucket);
    if (own === undefined) buckets.set(bucket, [i]);
    else own.push(i);
  });
  return [...buckets.values()].filter(({ length }) => length >= leastOfSize);
}

/** The means of sizes, and the line through them. */
function lineOf(
  runs: readonly RecordedRun[],
  ms: readonly number[],
  buckets: readonly (readonly number[])[],
): CostLine {
  const table = buckets.map((own): MeasuredPoint & { readonly length: 3 } => {
    const meanSize = mean(own.map((i) => runs[i]!.size));
    const times = own.map((i) => ms[i]!);
    const meanMs = mean(times);
    const errorRate = Math.sqrt(mean(times.map((one) => (one - meanMs) ** 2)) / own.length) / meanMs;
    return [meanSize, meanMs, errorRate];
  });
  return {
    ...fitLine(
      table,
      buckets.map(({ length }) => length),
    ),
    table,
  };
}

interface Contention {
  readonly rate: number;
  /** Above it the error of a run time may be more than `mostOff`; at most twice as many as there were. */
  readonly most: number;
}

/** As each run begins, itself included: a mean over the run would be larger where the run is longer. */
function inFlightOf(runs: readonly RecordedRun[], busyMs: readonly number[]): number[] {
  const endsMs = Float64Array.from(runs, ({ endMs }) => endMs).sort();
  const startsMs = runs.map(({ endMs }, i) => endMs - busyMs[i]!);
  const inFlight: number[] = [];
  let ended = 0;
  for (const [begun, i] of [...runs.keys()].sort((a, b) => startsMs[a]! - startsMs[b]!).entries()) {
    // Both are rounded to one microsecond.
    while (endsMs[ended]! <= startsMs[i]! + 0.0015) ended++;
    inFlight[i] = begun + 1 - ended;
  }
  return inFlight;
}

function contentionOf(inFlight: readonly number[], slowdown: readonly number[]): Contention {
  const points = inFlight.map((size, i) => ({ size, runMs: slowdown[i]!, weight: 1 }));
  const { meanSize, meanMs, variance, covariance } = momentsOf(points);
  const tilt = variance > 0 ? covariance / variance : 0;
  const squares = mean(points.map(({ size, runMs }) => (runMs - meanMs - tilt * (size - meanSize)) ** 2));
  /** Two standard errors. */
  const off = 2 * Math.sqrt(squares / (points.length * variance));
  const usual = inFlight.toSorted((a, b) => a - b)[Math.floor(0.95 * inFlight.length)]!;
  const known = meanSize + (mostOff * meanMs) / off;
  return {
    rate: tilt > off ? tilt / Math.max(1e-6, meanMs - tilt * (meanSize - 1)) : 0,
    most: variance > 0 ? Math.max(usual, Math.min(known, 2 * usual)) : usual,
  };
}

export function mean(values: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i]!;
  return sum / values.length;
}
