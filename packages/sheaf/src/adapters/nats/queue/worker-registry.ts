import type { Clock } from "../../../core/runtime/runtime.ts";
import { recordOf } from "../../../shared/packed.ts";
import type { RecordedSettings } from "../../../shared/recorded-settings.ts";
import { every } from "../wire/every.ts";

/** A worker's report, sent every second. */
export interface WorkerInfo {
  readonly id: string;
  readonly slots: number;
  readonly maxBatchSize: number;
  /** Its model is ready and it takes items. */
  readonly isServing: boolean;
  /** Run time of the largest recent batch in milliseconds, and its size; 0 before the first. */
  readonly runMs: number;
  readonly runSize: number;
  /** The description of its model, as given to the worker, for front ends to compare. */
  readonly serves?: string | undefined;
  /** The version of the model, as given to the worker. */
  readonly version?: string | undefined;
  /** Where the items of that version go. */
  readonly route: string;
  /** Items go to the version with the highest generation. */
  readonly generation: number;
  /** It holds items that may have ended another worker, and perhaps runs one of them. */
  readonly suspects?: "waiting" | "trying" | undefined;
  /** The JetStream domain that its queue is in, "" for the default one; undefined where its server does not say. */
  readonly domain?: string | undefined;
  /** Front ends whose items came to it lately. */
  readonly frontEnds?: number | undefined;
  /** Of its batcher, for the records of front ends. */
  readonly settings?: RecordedSettings | undefined;
}

/** Reads a heartbeat. @throws {TypeError | SyntaxError} when it is not one. */
export function workerInfoOf(bytes: Uint8Array): WorkerInfo {
  const heartbeat = recordOf(bytes);
  const { id, slots, maxBatchSize, isServing, runMs, runSize, serves, version, route, generation } = heartbeat;
  const { frontEnds = 0, domain } = heartbeat;
  const numbers = [slots, maxBatchSize, runMs, runSize, generation, frontEnds].every((number) =>
    Number.isFinite(number),
  );
  const isTextOrNone = (value: unknown): boolean => value === undefined || typeof value === "string";
  const texts = typeof id === "string" && [serves, version, domain].every(isTextOrNone);
  // Part of subjects: a forged one could name any subject.
  const isRoute = typeof route === "string" && /^[\da-z]{1,32}$/.test(route);
  if (!numbers || !texts || !isRoute || typeof isServing !== "boolean")
    throw new TypeError("It is not a worker's heartbeat.");
  return heartbeat as unknown as WorkerInfo;
}

/** Workers send a heartbeat this often; after `goneAfterMs` of silence one counts as gone. */
export const aliveEveryMs = 500;
const goneAfterMs = 5000;
const maxWorkers = 10_000;
/** A turn of the event loop may take this long; for the time beyond, this process did not listen. */
const longestTurnMs = 1000;
const lookEveryMs = 500;

/** The workers whose heartbeats came lately. */
export class WorkerRegistry {
  readonly stop: () => void;
  readonly #clock: Clock;
  readonly #seen: Map<string, { readonly info: WorkerInfo; readonly awakeAtMs: number }> = new Map();
  /** Time that this process listened, up to its last look: its own pauses do not count as silence. */
  #awakeMs = 0;
  #lookedAtMs: number;

  /** `looked` is called regularly: silence is an event too. */
  constructor(clock: Clock, looked: () => void = () => undefined) {
    this.#clock = clock;
    this.#lookedAtMs = clock.now();
    this.stop = every(clock, lookEveryMs, () => {
      this.#awakeMs = this.#awakeNowMs;
      this.#lookedAtMs = clock.now();
      looked();
    });
  }

  add(info: WorkerInfo): void {
    // A worker's last word.
    if (info.slots === 0) return void this.#seen.delete(info.id);
    if (this.#seen.size >= maxWorkers && !this.#seen.has(info.id)) return;
    this.#seen.set(info.id, { info, awakeAtMs: this.#awakeNowMs });
  }

  remove(id: string): void {
    this.#seen.delete(id);
  }

  /** Those that have sent no heartbeat for so long. */
  silentFor(ms: number): WorkerInfo[] {
    const cutoffAtMs = this.#awakeNowMs - ms;
    return [...this.#seen.values()].filter(({ awakeAtMs }) => awakeAtMs < cutoffAtMs).map(({ info }) => info);
  }

  /** Those that are there now, whether they serve or not. */
  all(): WorkerInfo[] {
    const cutoffAtMs = this.#awakeNowMs - goneAfterMs;
    for (const [id, { awakeAtMs }] of this.#seen) if (awakeAtMs < cutoffAtMs) this.#seen.delete(id);
    return [...this.#seen.values()].map(({ info }) => info);
  }

  get #awakeNowMs(): number {
    return this.#awakeMs + Math.min(longestTurnMs, this.#clock.now() - this.#lookedAtMs);
  }
}
