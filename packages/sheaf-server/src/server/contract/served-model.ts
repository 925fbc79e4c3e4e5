import type { BatchRecord, BatcherStats } from "sheaf";
import type { WorkerExecutor } from "sheaf/node";
import type { CachePart } from "../../cache/cache-counts.ts";
import type { Served } from "../../cache/served.ts";
import type { InferOptions } from "../../http/call-options.ts";
import type { ModelDefinition } from "./model-definition.ts";
import type { ModelStatistics } from "./model-statistics.ts";
import type { Settings } from "../../settings/settings.ts";

/**
 * `restarting`: no worker is alive, but one starts at once, and items wait for it. `unavailable`: its workers crashed too
 * often and pause, or they are on other machines and none of them can be reached.
 */
export type ModelState = "loading" | "ready" | "restarting" | "unavailable" | "failed" | "closed";

/** Turns a parsed JSON value into one item of a model. @throws {Problem} naming path, expected and got. */
export type InputParser = (value: unknown, path: string) => unknown;

/** The part of its deadline that an item may be expected to take; the rest covers the estimate's error and HTTP. */
export const refuseLate = 0.85;

/** Inputs found to crash a worker, and inputs refused because they had. */
export interface CrashedInputCounts {
  readonly found: number;
  readonly refused: number;
}

/** A model as the routes see it: behind a batcher in this process, or behind a queue that a fleet shares. */
export interface ServedModel {
  readonly name: string;
  readonly definition: ModelDefinition;
  readonly settings: Settings;
  readonly maxBatchSize: number;
  /** JSON value → item. */
  readonly parse: InputParser;
  readonly state: ModelState;
  /** Why it cannot run; undefined where it can. */
  readonly failure: unknown;
  /** Its worker threads or processes here; none where it runs in this process, or elsewhere. */
  readonly workers: WorkerExecutor<never, unknown> | undefined;
  /** Its counts since it was opened. */
  readonly statistics: ModelStatistics;
  /** Its inputs that crashed a worker here; none where it runs elsewhere. */
  readonly crashedInputs: CrashedInputCounts | undefined;
  /** Its results that are kept; none where they are not. */
  readonly cache: CachePart | undefined;
  /** Items that a shutdown cut off before their result. */
  readonly cutOff: number;
  /** Resolves when it can run; rejects with the reason if it never will. */
  ready(): Promise<void>;
  stats(): BatcherStats;
  subscribe(listener: (record: BatchRecord) => void): () => void;
  /** One item. @throws {BatcherError} as the batcher does, or the error of the model. */
  infer(item: unknown, options: InferOptions): Promise<Served>;
  /**
   * Several items; outcomes in order.
   * @throws {BatcherError} `QUEUE_FULL` when they are refused whole.
   */
  inferAll(items: readonly unknown[], options: InferOptions): Promise<PromiseSettledResult<Served>[]>;
  /** In a fleet, the model here that takes its items from the queue beside the others'. */
  readonly local?: ServedModel | undefined;
  /** Keeps it open, for a request that goes in piece by piece, until the returned function is called. */
  hold(): () => void;
  /** Finishes accepted items; those left after `graceMs` get `CLOSED`. Once. */
  close(graceMs: number): Promise<void>;
}
