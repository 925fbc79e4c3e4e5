import type { BatchRecord } from "sheaf";

/** How often something happened, and its total duration. */
export interface Duration {
  count: number;
  ms: number;
}

const none = (): Duration => ({ count: 0, ms: 0 });

export interface AnsweredRequest {
  /** Items that ran, not those from the cache. */
  readonly items: number;
  /** Arrival → result of its last item. */
  readonly totalMs: number;
  /** Arrival → start of its last batch. */
  readonly queueMs: number;
}

/** Counts of a model since it was opened, over all protocols; they never fall. */
export class ModelStatistics {
  readonly success: Duration = none();
  readonly fail: Duration = none();
  readonly queue: Duration = none();
  /** Answered requests for which nothing ran. */
  readonly withoutRun: Duration = none();
  /** Items of answered requests that ran. */
  items = 0;
  /** Successful batches and their run times by size, so at most one entry for each possible size. */
  readonly batches: Map<number, Duration> = new Map();
  /** When the last request ended, in ms since 1970; 0 before the first. */
  lastAtMs = 0;

  answered({ items, totalMs, queueMs }: AnsweredRequest): void {
    add(this.success, totalMs);
    add(this.queue, queueMs);
    if (items === 0) add(this.withoutRun, totalMs);
    this.items += items;
    this.lastAtMs = Date.now();
  }

  failed(totalMs: number): void {
    add(this.fail, totalMs);
    this.lastAtMs = Date.now();
  }

  batch({ size, runMs, outcome }: Pick<BatchRecord, "size" | "runMs" | "outcome">): void {
    if (outcome !== "ok") return;
    let runs = this.batches.get(size);
    if (runs === undefined) this.batches.set(size, (runs = none()));
    add(runs, runMs);
  }
}

function add(duration: Duration, ms: number): void {
  duration.count++;
  duration.ms += ms;
}
