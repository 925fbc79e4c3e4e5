import type { Clock } from "../../../core/runtime/clock.ts";
import { recordOf } from "../wire/envelope.ts";

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
  if (!numbers || !texts || typeof isServing !== "boolean") throw new TypeError("It is not a heartbeat of a worker.");
  return said as unknown as WorkerInfo;
}

/** Workers say that they are alive this often; after `goneAfterMs` of silence one counts as gone. */
export const aliveEveryMs = 1000;
const goneAfterMs = 5000;
const maxWorkers = 10_000;
/** A turn of the event loop may take so long; what it takes beyond, this process was not there to listen. */
const longestTurnMs = 1000;
const lookEveryMs = 500;

/** The workers that a front end has heard of lately. */
export class WorkerRegistry {
  readonly #clock: Clock;
  readonly #seen: Map<string, { readonly info: WorkerInfo; readonly awakeAtMs: number }> = new Map();
  /** Time that this process listened, up to its last look: a pause of its own is nobody's silence. */
  #awakeMs = 0;
  #lookedAtMs: number;
  #cancelLook: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#lookedAtMs = clock.now();
  }

  begin(): void {
    this.#awakeMs = this.#awakeNowMs;
    this.#lookedAtMs = this.#clock.now();
    this.#cancelLook = this.#clock.after(lookEveryMs, () => this.begin());
  }

  stop(): void {
    this.#cancelLook?.();
  }

  add(info: WorkerInfo): void {
    if (this.#seen.size >= maxWorkers && !this.#seen.has(info.id)) return;
    this.#seen.set(info.id, { info, awakeAtMs: this.#awakeNowMs });
  }

  /** Those that serve now. */
  list(): WorkerInfo[] {
    const sinceMs = this.#awakeNowMs - goneAfterMs;
    for (const [id, { awakeAtMs }] of this.#seen) if (awakeAtMs < sinceMs) this.#seen.delete(id);
    return [...this.#seen.values()].map(({ info }) => info).filter(({ isServing }) => isServing);
  }

  get #awakeNowMs(): number {
    return this.#awakeMs + Math.min(longestTurnMs, this.#clock.now() - this.#lookedAtMs);
  }

  /** How long `items` take all of them together, in milliseconds; undefined before it can be told. */
  drainMs(items: number): number | undefined {
    let itemsPerMs = 0;
    for (const { slots, runMs, runSize } of this.list()) if (runMs > 0) itemsPerMs += (slots * runSize) / runMs;
    return itemsPerMs > 0 ? items / itemsPerMs : undefined;
  }
}
