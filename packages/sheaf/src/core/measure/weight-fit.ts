import { eliminate } from "./least-squares.ts";

/** A run as far as weights explain it. */
export interface WeighedRun {
  size: number;
  /** Of its items together. */
  weight: number;
  /** Of its heaviest item. */
  heaviest: number;
  runMs: number;
}

/** The most runs that weights are fitted to. */
const maxRuns = 128;
/** Share of the last run in the mean weight of items. */
const meanShare = 1 / 30;
/** Runs in a row that are off the fit in one direction, until it follows. */
const surprisesToFollow = 4;

/** The cost of runs by size and weight, learned while weights explain it better than sizes do. */
export class WeightCost {
  fit: WeightFit | undefined;
  /** How many of the last runs it is fitted to. */
  runs = 0;
  readonly #isSummed: boolean;
  #unfitted = 0;
  #surprises = 0;
  /** Weight of an item as runs count it, over about the last 30. */
  #meanWeight = 0;

  /** `isSummed`: weights count as a sum, whatever runs look like. */
  constructor(isSummed: boolean) {
    this.#isSummed = isSummed;
  }

  /** `last` returns the last runs, this one included. */
  learn(
    size: number,
    sum: number,
    heaviest: number,
    runMs: number,
    expectedMs: number,
    last: (count: number) => readonly WeighedRun[],
  ): void {
    const counted = this.fit?.padded === true ? heaviest : sum / size;
    this.runs = Math.min(this.runs + 1, maxRuns);
    this.#meanWeight += Math.max(meanShare, 1 / this.runs) * (counted - this.#meanWeight);
    if (this.fit !== undefined) this.#follow(this.fit, expectedMs, runMs);
    if (++this.#unfitted < 8 && this.runs > 64) return;
    this.#unfitted = 0;
    this.fit = fitWeights(last(this.runs), this.fit, this.#isSummed);
  }

  /** Where run times have changed for all weights alike, the fit changes with them until the old runs are forgotten. */
  #follow(fit: WeightFit, expectedMs: number, runMs: number): void {
    const error = runMs / Math.max(expectedMs, Number.EPSILON) - 1;
    const isSurprise = Math.abs(error) > Math.max(4 * fit.noise, 0.25);
    const direction = Math.sign(error);
    if (!isSurprise) this.#surprises = 0;
    else this.#surprises = Math.sign(this.#surprises) === direction ? this.#surprises + direction : direction;
    if (Math.abs(this.#surprises) < surprisesToFollow) return;
    this.#surprises = 0;
    const factor = 1 + error;
    this.fit = {
      ...fit,
      fixedMs: fit.fixedMs * factor,
      perItemMs: fit.perItemMs * factor,
      perWeightMs: fit.perWeightMs * factor,
    };
    this.runs = surprisesToFollow;
  }

  /** Of a run of these items; undefined, as all below, while sizes explain runs as well. */
  of(size: number, sum: number, heaviest: number): number | undefined {
    if (this.fit === undefined) return undefined;
    const { fixedMs, perItemMs, perWeightMs, padded } = this.fit;
    return fixedMs + perItemMs * size + perWeightMs * (padded ? heaviest * size : sum);
  }

  /** Of a run of items of the mean weight. */
  line(size: number): number | undefined {
    return this.fit && this.fit.fixedMs + this.perItemMs! * size;
  }

  get perItemMs(): number | undefined {
    return this.fit && this.fit.perItemMs + this.fit.perWeightMs * this.#meanWeight;
  }
}

/** The cost of runs by their size and their weight, in milliseconds: `fixedMs + perItemMs · size + perWeightMs · weight`. */
export interface WeightFit {
  readonly fixedMs: number;
  readonly perItemMs: number;
  readonly perWeightMs: number;
  /** A run's weight is that of its heaviest item times its size, as where shorter items are padded. */
  readonly padded: boolean;
  /** Mean absolute error of a prediction, as a share of it. */
  readonly noise: number;
  /** 95 % ranges. */
  readonly fixedMsRange: readonly [low: number, high: number];
  readonly perItemMsRange: readonly [low: number, high: number];
  readonly perWeightMsRange: readonly [low: number, high: number];
  readonly runs: number;
}

/** Runs before weights are believed: fewer fit almost any three numbers. */
const minRuns = 16;
/** The error of predictions with weights must be at most this share of the error without; once believed, the second. */
const mustExplain = 0.7;
const mustKeepExplaining = 0.9;
/** The other way of counting must be better by a quarter to take over: like lengths together look the same both ways. */
const mustBeBetter = 0.75;
/** Rounds of weighing runs by how far off the line they are: a pause counts by a tenth after two. */
const robustRounds = 3;
/** Runs this many typical errors off the line count less. */
const typicalErrors = 2.5;
/** A clock without noise has errors too: by rounding. */
const leastError = 1e-4;
/** Standard errors on either side of an estimate: 95 %. */
const width = 2;

/**
 * The robust least-squares fit of run times by size and weight, where weights explain them better than sizes alone do;
 * `undefined` otherwise. `before`: the last fit, which stays in doubt. `isSummed`: weights count as a sum in any case.
 */
export function fitWeights(
  runs: readonly WeighedRun[],
  before?: WeightFit,
  isSummed: boolean = false,
): WeightFit | undefined {
  if (runs.length < minRuns) return before;
  const bySize = fit(runs, [one, size]);
  const ways = (isSummed ? [false] : [false, true]).map((padded) => {
    const columns = [one, size, padded ? paddedWeight : summedWeight];
    const keep = before === undefined || before.padded === padded ? 1 : mustBeBetter;
    const fitted = fit(runs, columns);
    return { padded, fitted, error: Math.max(fitted.error, leastError) / keep };
  });
  const { padded, fitted } = ways.reduce((best, way) => (way.error < best.error ? way : best));
  const [fixedMs, perItemMs, perWeightMs] = fitted.parts as [number, number, number];
  const [fixedOff, perItemOff, perWeightOff] = fitted.deviations as [number, number, number];
  const share = before === undefined ? mustExplain : mustKeepExplaining;
  const explains = fitted.error <= share * bySize.error && perWeightMs > width * perWeightOff;
  if (!explains) return undefined;
  const range = (ms: number, off: number): [number, number] => [Math.max(0, ms - width * off), ms + width * off];
  return {
    fixedMs,
    perItemMs,
    perWeightMs,
    padded,
    noise: fitted.error,
    fixedMsRange: range(fixedMs, fixedOff),
    perItemMsRange: range(perItemMs, perItemOff),
    perWeightMsRange: range(perWeightMs, perWeightOff),
    runs: runs.length,
  };
}

type Column = (run: WeighedRun) => number;
const one: Column = () => 1;
const size: Column = (run) => run.size;
const summedWeight: Column = (run) => run.weight;
const paddedWeight: Column = (run) => run.heaviest * run.size;

interface Fitted {
  /** The cost of each column; never negative. */
  readonly parts: readonly number[];
  readonly deviations: readonly number[];
  /** Mean absolute relative error of the nine tenths of the runs that fit best. */
  readonly error: number;
}

/** Errors count relative to the run time; a column with a negative part is left out. */
function fit(runs: readonly WeighedRun[], columns: readonly Column[]): Fitted {
  const left = columns.map(() => true);
  for (;;) {
    const kept = columns.filter((_, k) => left[k]);
    const { parts, deviations, error } = robustFit(runs, kept);
    const negative = parts.findIndex((part) => part < 0);
    if (negative < 0) {
      const at = columns.map((_, k) => (left[k] === true ? left.slice(0, k).filter(Boolean).length : -1));
      return { parts: at.map((k) => parts[k] ?? 0), deviations: at.map((k) => deviations[k] ?? 0), error };
    }
    left[columns.indexOf(kept[negative]!)] = false;
  }
}

/** Loops, because a batcher fits every few runs: with a function for each run it takes several times as long. */
function robustFit(runs: readonly WeighedRun[], columns: readonly Column[]): Fitted {
  const valuesOf = (column: Column): Float64Array => new Float64Array(runs.map(column));
  const rows = columns.map(valuesOf);
  const ms = valuesOf(({ runMs }) => runMs);
  const counts = ms.map((runMs) => 1 / Math.max(runMs, Number.EPSILON) ** 2);
  const weights = counts.slice();
  const errors = new Float64Array(runs.length);
  let parts: number[] = [];
  let inverse: number[][] = [];
  for (let round = 0; round < robustRounds; round++) {
    ({ parts, inverse } = leastSquares(rows, ms, weights));
    for (let i = 0; i < ms.length; i++) {
      let expectedMs = 0;
      for (let k = 0; k < rows.length; k++) expectedMs += rows[k]![i]! * parts[k]!;
      errors[i] = Math.abs(ms[i]! - expectedMs) / Math.max(expectedMs, Number.EPSILON);
    }
    const limit = typicalErrors * Math.max(leastError, errors.toSorted()[Math.floor(0.7 * errors.length)]!);
    for (let i = 0; i < ms.length; i++) weights[i] = Math.min(1, limit / errors[i]!) * counts[i]!;
  }
  const best = errors.sort().subarray(0, Math.ceil(0.9 * errors.length));
  const error = best.reduce((sum, value) => sum + value, 0) / best.length;
  const variance = (1.25 * Math.max(error, leastError)) ** 2;
  return { parts, deviations: inverse.map((row, k) => Math.sqrt(variance * Math.max(0, row[k]!))), error };
}

/** Solves the normal equations; columns that say the same share the cost by a small ridge. */
function leastSquares(
  columns: readonly Float64Array[],
  ms: Float64Array,
  weights: Float64Array,
): { parts: number[]; inverse: number[][] } {
  const n = columns.length;
  const all = [...columns, ms];
  // Of each column with each other, and with the run times.
  const products = new Float64Array(n * (n + 1));
  for (let i = 0; i < ms.length; i++) {
    for (let j = 0; j < n; j++) {
      const value = weights[i]! * all[j]![i]!;
      for (let k = 0; k <= n; k++) products[j * (n + 1) + k]! += value * all[k]![i]!;
    }
  }
  const scale = columns.map((_, j) => Math.sqrt(products[j * (n + 2)]!) || 1);
  const matrix = scale.map((own, j) => [
    ...scale.map((other, k) => products[j * (n + 1) + k]! / (own * other) + (j === k ? 1e-9 : 0)),
    ...scale.map((_, k) => (j === k ? 1 : 0)),
  ]);
  eliminate(matrix, 0);
  const inverse = matrix.map((row, j) => scale.map((other, k) => row[n + k]! / (scale[j]! * other)));
  const parts = inverse.map((row) => row.reduce((sum, value, k) => sum + value * products[k * (n + 1) + n]!, 0));
  return { parts, inverse };
}
