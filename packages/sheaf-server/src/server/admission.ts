import { BatcherError, type BatcherStats, type BatchRecord, type CallOptions } from "sheaf";
import { WaitEstimate } from "./wait-estimate.ts";
import { withoutStack } from "./without-stack.ts";

type Lane = 0 | 1 | 2;

/** What waits in a batcher: the item, and what its dispatch writes down about it. */
export interface Entry {
  readonly item: unknown;
  readonly lane: Lane;
  readonly arrivedAtMs: number;
  queueMs: number;
  batchSize: number;
  batchId: number;
  /** It shares its batch with no other item. */
  readonly isAlone: boolean;
  isDispatched: boolean;
}

export interface AdmissionLimits {
  /** Names the model in errors. */
  readonly name: string;
  readonly queueMaxSize: number;
  readonly slots: number;
  readonly maxBatchSize: number;
}

/** What part of its deadline an item may be expected to take; the rest is for the estimate's error and for HTTP. */
const deadlineShare = 0.85;

/** The door before a batcher: knows what waits and runs, and refuses at once what would not be answered in time. */
export class Admission {
  /** Items refused here, before they reached the batcher. */
  refused = 0;
  readonly #limits: AdmissionLimits;
  readonly #estimate: WaitEstimate;
  /** Items that wait, by lane: immediate, interactive, bulk. */
  readonly #waiting: [number, number, number] = [0, 0, 0];
  /** Batches handed to the executor. */
  #running = 0;

  constructor(limits: AdmissionLimits, stats: () => BatcherStats) {
    this.#limits = limits;
    this.#estimate = new WaitEstimate(limits, stats);
  }

  /** Items that wait for their batch. */
  get waiting(): number {
    const [immediate, interactive, bulk] = this.#waiting;
    return immediate + interactive + bulk;
  }

  /** How long what waits now will take to leave the queue, in milliseconds. */
  get drainMs(): number {
    return this.#estimate.drainMs(this.waiting);
  }

  observe(record: BatchRecord): void {
    this.#estimate.observe(record);
  }

  /**
   * Refuses what does not fit, and what could not be answered in time: an answer at once is worth more to the caller than
   * one after the deadline, and a queue that is older than its deadlines serves nobody.
   * @throws {BatcherError} `QUEUE_FULL`
   */
  admit(items: number, { timeoutMs, priority }: CallOptions): void {
    const { waiting } = this;
    const { name, queueMaxSize } = this.#limits;
    if (waiting + items > queueMaxSize) {
      const numbers = { waiting, items, queueMaxSize };
      throw this.#refusal(items, `${name}: no room for ${items} more.`, numbers);
    }
    const before = this.#waiting.slice(0, laneOf(priority) + 1).reduce((sum, count) => sum + count, 0);
    if (timeoutMs === undefined || before === 0) return;
    const expectedMs = this.#estimate.latencyMs(before + items - 1, this.#running);
    if (expectedMs === undefined || expectedMs <= deadlineShare * timeoutMs) return;
    throw this.#refusal(items, `${name}: no result is to be had in time.`, { waiting, expectedMs, timeoutMs });
  }

  enter(item: unknown, { priority }: CallOptions, isAlone: boolean = false): Entry {
    const lane = laneOf(priority);
    this.#waiting[lane]++;
    return {
      item,
      lane,
      arrivedAtMs: performance.now(),
      queueMs: 0,
      batchSize: 0,
      batchId: 0,
      isAlone,
      isDispatched: false,
    };
  }

  /** Its batch was sent, or it ended without one. */
  left(entry: Entry): void {
    if (!entry.isDispatched) this.#waiting[entry.lane]--;
    entry.isDispatched = true;
  }

  /** Runs a batch of entries, and writes down in each how it came to run. */
  async dispatch<T>(entries: readonly Entry[], batchId: number, run: (items: unknown[]) => Promise<T>): Promise<T> {
    const startedAtMs = performance.now();
    for (const entry of entries) {
      this.left(entry);
      entry.queueMs = startedAtMs - entry.arrivedAtMs;
      entry.batchSize = entries.length;
      entry.batchId = batchId;
    }
    this.#running++;
    try {
      return await run(entries.map(({ item }) => item));
    } finally {
      this.#running--;
    }
  }

  #refusal(items: number, message: string, numbers: Readonly<Record<string, number>>): BatcherError {
    this.refused += items;
    return withoutStack(() => new BatcherError("QUEUE_FULL", message, numbers));
  }
}

function laneOf(priority: CallOptions["priority"]): Lane {
  if (priority === "immediate") return 0;
  return priority === "bulk" ? 2 : 1;
}
