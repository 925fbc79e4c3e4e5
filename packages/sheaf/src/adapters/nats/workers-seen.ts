import type { Clock } from "../../core/clock.ts";
import { recordOf } from "./envelope.ts";

/** What a worker says of itself every second. */
export interface WorkerInfo {
  readonly id: string;
  readonly slots: number;
  readonly maxBatchSize: number;
  /** Its model is ready and it takes items. */
  readonly isServing: boolean;
  /** Run time of the largest recent batch in milliseconds, and its size; 0 before the first. */
  readonly runMs: number;
  readonly runSize: number;
  /** What it serves, as given to the worker: front ends can see whether it is what they mean. */
  readonly serves?: string | undefined;
}

/** What a worker said. @throws {TypeError | SyntaxError} when it is nothing that a worker says. */
export function workerInfoOf(bytes: Uint8Array): WorkerInfo {
  const said = recordOf(bytes);
  const { id, slots, maxBatchSize, isServing, runMs, runSize, serves } = said;
  const numbers = [slots, maxBatchSize, runMs, runSize].every((number) => Number.isFinite(number));
  const texts = typeof id === "string" && (serves === undefined || typeof serves === "string");
  if (!numbers || !texts || typeof isServing !== "boolean") throw new TypeError("It is no word of a worker.");
  return said as unknown as WorkerInfo;
}

/** Workers say that they are alive this often; after `goneAfterMs` of silence one counts as gone. */
export const aliveEveryMs = 1000;
const goneAfterMs = 3500;
const mostWorkers = 10_000;

/** The workers that a front end has heard of lately. */
export class WorkersSeen {
  readonly #clock: Clock;
  readonly #seen: Map<string, { readonly info: WorkerInfo; readonly atMs: number }> = new Map();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  heard(info: WorkerInfo): void {
    if (this.#seen.size >= mostWorkers && !this.#seen.has(info.id)) return;
    this.#seen.set(info.id, { info, atMs: this.#clock.now() });
  }

  /** Those that serve now. */
  list(): WorkerInfo[] {
    const sinceMs = this.#clock.now() - goneAfterMs;
    for (const [id, { atMs }] of this.#seen) if (atMs < sinceMs) this.#seen.delete(id);
    return [...this.#seen.values()].map(({ info }) => info).filter(({ isServing }) => isServing);
  }

  /** How long `items` take all of them together, in milliseconds; undefined before it can be told. */
  drainMs(items: number): number | undefined {
    let itemsPerMs = 0;
    for (const { slots, runMs, runSize } of this.list()) if (runMs > 0) itemsPerMs += (slots * runSize) / runMs;
    return itemsPerMs > 0 ? items / itemsPerMs : undefined;
  }
}
