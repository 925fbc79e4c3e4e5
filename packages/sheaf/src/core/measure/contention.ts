import { bucketOf } from "../../policies/cost-model.ts";
import { eliminate } from "./least-squares.ts";

/**
 * How runs slow each other down: `unsharedMs + (fixedMs + perItemMs · items) · slowdown`, where the slowdown of m runs in flight is 1
 * up to `places`, and m / places · (1 + drag · (m − places)) beyond.
 */
export interface ContentionFit {
  /** The part of a run that others do not slow down, such as a network's. */
  readonly unsharedMs: number;
  readonly fixedMs: number;
  readonly perItemMs: number;
  /** Runs that the service works on side by side; Infinity where nothing shows a limit. */
  readonly places: number;
  readonly drag: number;
}

/** Means of runs of about one size that met about as many others. */
interface Cell {
  weight: number;
  /** Runs in flight, itself included. */
  inFlight: number;
  size: number;
  runMs: number;
  /** Variance of the run time. */
  variance: number;
  /** The run that changed it last. */
  at: number;
}

/** Runs of a cell that count: its mean follows within about as many. */
const maxPerCell = 16;
/** Each run makes the others count less, so that half of a cell is forgotten after 350. */
const forgetting = 0.998;
const leastWeight = 0.2;
const placesTried = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
/** Much drag is found only near its start: beyond, no service of many places would work. */
const dragTried = 0.1;
/** By so many standard errors must drag explain run times better. */
const dragDeviations = 2;
const mostPlacesWithDrag = 64;
/** That there is a limit at all must explain run times better by so many standard errors. */
const deviations = 4;
/** Of numbers that explain them alike, the largest. */
const alike = 0.5;
/** A clock without noise has errors too. */
const leastVariance = 1e-4;
/** A run longer than this many times its expected time is a stall. */
const stall = 4;
const trustedWeight = 3;
/** A run this many times as long as those of its cell, or as short, is a surprise; so many in a row are the new truth. */
const surprising = 1.3;
const surprisesToFollow = 6;
const doubted = 0.9;

/** Learns from runs and the number in flight while they ran how far they slow each other down. */
export class Contention {
  readonly #cells: Map<number, Cell> = new Map();
  #runs = 0;
  /** Runs in a row that took much longer than such runs did, or with a negative sign less long. */
  #surprises = 0;
  /** The least and the most runs in flight that runs have met lately, as of the last fit. */
  least: number = Infinity;
  most: number = 0;
  last: ContentionFit | undefined;
  /** Runs have become slower (1) or faster (-1) for good; whoever has followed sets it to 0. */
  change: -1 | 0 | 1 = 0;

  /** @param inFlight runs in flight on average while it ran, itself included */
  observe(inFlight: number, size: number, runMs: number): void {
    this.#runs++;
    const key = 64 * levelOf(inFlight) + bucketOf(size);
    let cell = this.#cells.get(key);
    if (cell === undefined) {
      cell = { weight: 0, inFlight: 0, size: 0, runMs: 0, variance: 0, at: 0 };
      this.#cells.set(key, cell);
    }
    const { last } = this;
    this.#follow(
      cell,
      last === undefined ? runMs : (runMs * msOf(last, cell.inFlight, cell.size)) / msOf(last, inFlight, size),
    );
    const knownMs = last !== undefined && cell.weight > trustedWeight ? stall * msOf(last, inFlight, size) : Infinity;
    const countedMs = Math.min(runMs, knownMs);
    const weight = Math.min(this.#weightOf(cell) + 1, maxPerCell);
    const differenceMs = countedMs - cell.runMs;
    cell.weight = weight;
    cell.at = this.#runs;
    cell.inFlight += (inFlight - cell.inFlight) / weight;
    cell.size += (size - cell.size) / weight;
    cell.runMs += differenceMs / weight;
    cell.variance += (differenceMs * (countedMs - cell.runMs) - cell.variance) / weight;
  }

  /**
   * Once several runs in a row take much longer than such runs did, or less long, what others taught is in doubt. `runMs` is what the
   * run would have taken at the cell's own number in flight: past the places of a service with drag, runs of one cell can differ by half.
   */
  #follow(cell: Cell, runMs: number): void {
    if (cell.weight < trustedWeight) return;
    const ratio = runMs / cell.runMs;
    const direction = ratio > surprising ? 1 : ratio < 1 / surprising ? -1 : 0;
    this.#surprises = direction * this.#surprises < 0 ? direction : direction && this.#surprises + direction;
    if (Math.abs(this.#surprises) < surprisesToFollow) return;
    this.#surprises = 0;
    this.change = direction;
    for (const each of this.#cells.values()) each.weight = Math.min(each.weight, doubted);
  }

  /** What runs that met more taught is out of date. */
  forgetAbove(inFlight: number): void {
    for (const [key, cell] of this.#cells) if (cell.inFlight > inFlight) this.#cells.delete(key);
  }

  /** The mean size of runs that met at least so many. */
  sizeAbove(inFlight: number): number | undefined {
    let weights = 0;
    let sizes = 0;
    for (const cell of this.#cells.values()) {
      if (cell.inFlight < inFlight) continue;
      weights += this.#weightOf(cell);
      sizes += this.#weightOf(cell) * cell.size;
    }
    return weights > 0 ? sizes / weights : undefined;
  }

  /**
   * The fit with the most places of those that explain the runs about equally well. Runs that met other numbers than `around` count
   * less: half as much at half or twice of it.
   */
  fit(around: number): ContentionFit | undefined {
    const points: Point[] = [];
    let weights = 0;
    let within = 0;
    this.least = Infinity;
    this.most = 0;
    for (const [key, cell] of this.#cells) {
      const weight = this.#weightOf(cell);
      if (weight < leastWeight) {
        this.#cells.delete(key);
        continue;
      }
      const { inFlight, size, runMs } = cell;
      const near = weight / (1 + Math.log2(inFlight / around) ** 2);
      points.push({ weight: near, inFlight, size, runMs });
      weights += near;
      within += (near * cell.variance) / runMs ** 2;
      if (weight > 1) {
        this.least = Math.min(this.least, inFlight);
        this.most = Math.max(this.most, inFlight);
      }
    }
    const fits: Fitted[] = [];
    const withDrag: Fitted[] = [];
    for (const places of placesTried) {
      // With fewer than any run has met, all are slowed down alike; with more, none.
      if (2 * places < this.least || places > this.most) continue;
      fits.push(fitOf(points, places, 0));
      if (places <= mostPlacesWithDrag) withDrag.push(fitOf(points, places, dragTried));
    }
    fits.push(fitOf(points, Infinity, 0));
    const plain = leastErrors(fits);
    const dragged = leastErrors(withDrag);
    const least = Math.min(plain, dragged);
    const variance = Math.max((least + within) / Math.max(1, weights - 4), leastVariance);
    const unlimited = fits.at(-1)!;
    const chosen = plain > least + dragDeviations ** 2 * variance ? withDrag : fits;
    this.last =
      unlimited.errors <= least + deviations ** 2 * variance
        ? unlimited
        : chosen.findLast(({ errors }) => errors <= leastErrors(chosen) + alike * variance);
    return this.last;
  }

  #weightOf(cell: Cell): number {
    return cell.weight * forgetting ** (this.#runs - cell.at);
  }
}

/** How many per cent longer a run of `size` takes where one per cent more are in flight: 1 where all of it is a queue. */
export function elasticity(fit: ContentionFit, inFlight: number, size: number): number {
  return Math.log(msOf(fit, step * inFlight, size) / msOf(fit, inFlight, size)) / Math.log(step);
}
const step = 1.05;

/** How many times as long a run takes as if it were alone. */
export const slowdownOf = (fit: ContentionFit, inFlight: number, size: number): number =>
  inFlight <= fit.places ? 1 : msOf(fit, inFlight, size) / msOf(fit, 1, size);

const msOf = (
  { unsharedMs, fixedMs, perItemMs, places, drag }: ContentionFit,
  inFlight: number,
  size: number,
): number => unsharedMs + (fixedMs + perItemMs * size) * slowdown(inFlight, places, drag);

const slowdown = (inFlight: number, places: number, drag: number): number =>
  inFlight <= places ? 1 : (inFlight / places) * (1 + drag * (inFlight - places));

/** In halves up to 8, then four an octave. */
const levelOf = (inFlight: number): number =>
  inFlight < 8 ? Math.round(2 * inFlight) : 16 + Math.round(4 * Math.log2(inFlight / 8));

const leastErrors = (fits: readonly Fitted[]): number =>
  fits.reduce((least, { errors }) => Math.min(least, errors), Infinity);

type Point = Pick<Cell, "weight" | "inFlight" | "size" | "runMs">;

interface Fitted extends ContentionFit {
  /** Weighted sum of the squared relative errors. */
  readonly errors: number;
}

/** Least squares of relative errors over 1, the slowdown, and items times the slowdown; no part is negative. */
function fitOf(points: readonly Point[], places: number, drag: number): Fitted {
  const a = [0, 0, 0, 0, 0, 0, 0, 0, 0];
  const b = [0, 0, 0];
  let squares = 0;
  for (const { weight, inFlight, size, runMs } of points) {
    const one = 1 / runMs;
    const shared = slowdown(inFlight, places, drag) * one;
    const items = size * shared;
    a[0]! += weight * one * one;
    a[1]! += weight * one * shared;
    a[2]! += weight * one * items;
    a[4]! += weight * shared * shared;
    a[5]! += weight * shared * items;
    a[8]! += weight * items * items;
    b[0]! += weight * one;
    b[1]! += weight * shared;
    b[2]! += weight * items;
    squares += weight;
  }
  a[3] = a[1]!;
  a[6] = a[2]!;
  a[7] = a[5]!;
  let best: Fitted = { unsharedMs: 0, fixedMs: 0, perItemMs: 0, places, drag, errors: Infinity };
  for (const columns of columnSets) {
    const parts = solved(a, b, columns);
    if (parts === undefined) continue;
    const [unsharedMs, fixedMs, perItemMs] = parts;
    const errors = Math.max(0, squares - unsharedMs * b[0]! - fixedMs * b[1]! - perItemMs * b[2]!);
    if (errors < best.errors) best = { unsharedMs, fixedMs, perItemMs, places, drag, errors };
  }
  return best;
}

/** All choices of columns, the largest first: it is the best where none of its parts is negative. */
const columnSets = [[0, 1, 2], [0, 1], [0, 2], [1, 2], [0], [1], [2]];
const ridge = 1 + 1e-6;

/** By those rows and columns alone; undefined where a part is negative. */
function solved(
  a: readonly number[],
  b: readonly number[],
  columns: readonly number[],
): [number, number, number] | undefined {
  const n = columns.length;
  const rows = columns.map((i) => [...columns.map((j) => (i === j ? ridge : 1) * a[3 * i + j]!), b[i]!]);
  if (!eliminate(rows, 1e-15)) return undefined;
  const parts: [number, number, number] = [0, 0, 0];
  for (let i = 0; i < n; i++) {
    if (!(rows[i]![n]! >= 0)) return undefined;
    parts[columns[i]!] = rows[i]![n]!;
  }
  return parts;
}
