import type { BatchRecord, BatcherStats } from "sheaf";

export interface DashboardBatcher {
  readonly name: string;
  readonly maxBatchSize: number;
  /**
   * A warning for operators, such as results that depend on the batch.
   * @default none
   */
  readonly warning?: string | undefined;
  stats(): BatcherStats;
  subscribe(listener: (record: BatchRecord) => void): () => void;
  /**
   * Figures of its result cache so far.
   * @default none: it has no cache
   */
  readonly cache?: { readonly counts: CacheFigures } | undefined;
  /**
   * Policy and limits in force, as the page lists them.
   * @default `maxBatchSize` alone
   */
  readonly limits?: readonly Limit[] | undefined;
  /**
   * The request of the page's playground.
   * @default none: it has no playground
   */
  readonly playground?: Playground | undefined;
}

/** Counts that only grow; smaller ones than before count from 0 again. */
export interface CacheFigures {
  readonly hits: number;
  readonly misses: number;
  /** Runs that the hits would have taken. */
  readonly savedRuns: number;
}

/** A row of the page's list of settings in force: `{ label: "Queue", value: "up to 1,000 items" }`. */
export interface Limit {
  readonly label: string;
  readonly value: string;
}

/** Where the playground sends `{"input": …}` or `{"inputs": […]}`, and the kind of an input. */
export interface Playground {
  /** Relative to the page: `infer/use-lite`. */
  readonly path: string;
  readonly input: { readonly kind: "text" | "json" } | { readonly kind: "floats"; readonly length: number };
  /**
   * The first value of the input.
   * @default one of its kind
   */
  readonly sample?: unknown;
  /** An input in words: "a text of at most 128 tokens". */
  readonly description: string;
}

/** The page's facts about a batcher beside its figures. */
export interface BatcherState {
  /** `ready`, `loading`, `restarting`, `failed` …: one word. */
  readonly state: string;
  readonly reason?: string | undefined;
  /** Default: it runs in this process. Empty: its workers are on other machines. */
  readonly workers?: readonly { readonly id: number | string; readonly state: string }[] | undefined;
  readonly restarts?: number | undefined;
}

/** Items of one who shares the server: it waits and runs, and it ended so. */
export interface TenantRow {
  readonly name: string;
  readonly inFlight: number;
  readonly items: Readonly<Record<"ok" | "error" | "timeout" | "aborted" | "rejected", number>>;
}

/** One limit of an upstream service, for one model. */
export interface LimitRow {
  readonly model: string;
  readonly kind: string;
  /** Null while it is not known. */
  readonly perMinute: number | null;
  readonly left: number | null;
  readonly used: number;
  /** Requests of the model that the service refused for their rate. */
  readonly refused: number;
  readonly waiting: Readonly<Record<"live" | "bulk", number>>;
  /** Those of whom most items wait. */
  readonly tenants: readonly { readonly name: string; readonly waiting: number }[];
}

/** A background batch that has not ended. */
export interface BackgroundBatch {
  readonly id: string;
  readonly model: string;
  readonly status: string;
  readonly total: number;
  readonly done: number;
  readonly failed: number;
  readonly linesPerSecond: number;
  /** Where to end it with POST, relative to the page. */
  readonly cancelPath: string;
  /**
   * Why it waits.
   * @default none
   */
  readonly paused?: string | undefined;
}

/** A process that reads requests, and how much of a core it uses. */
export interface FrontRow {
  readonly name: string;
  readonly coreShare: number;
}

/** The page's figures of the whole server, once a second. */
export interface DashboardState {
  /** `ok`, `warming`, `restarting`, `draining` or `failed`. */
  readonly status: string;
  readonly batchers: Readonly<Record<string, BatcherState>>;
  /**
   * The busiest tenants, one sum of all others, and the items of all that a bound kept out of every queue, since the start.
   * @default none: callers are not told apart
   */
  readonly tenants?:
    { readonly busiest: readonly TenantRow[]; readonly others: TenantRow; readonly keptOut: number } | undefined;
  /**
   * Limits of the service that it calls.
   * @default none
   */
  readonly rateLimits?: readonly LimitRow[] | undefined;
  /**
   * Those that have not ended.
   * @default none
   */
  readonly batches?: readonly BackgroundBatch[] | undefined;
  /**
   * Processes that read requests for this one.
   * @default none: one process does everything
   */
  readonly fronts?: readonly FrontRow[] | undefined;
}
