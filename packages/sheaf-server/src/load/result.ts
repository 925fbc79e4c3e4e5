import type { SimulatedGoodput } from "sheaf/internal/tuning";
import type { Pattern } from "./pattern.ts";

/**
 * Milliseconds since the *intended* send time, of the requests that ended 2xx and of those given up, which count with the
 * whole timeout; requests refused or failed before that are in `statuses` only. 0 without data.
 */
export interface LatencyMs {
  readonly mean: number;
  readonly p50: number;
  readonly p75: number;
  readonly p90: number;
  readonly p95: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

/** A slice of a run. `offeredPerS` and latencies go by when requests were to leave, `achievedPerS` by when they ended. */
export interface SeriesPoint {
  /** Middle of the slice, from the start of the measured span. */
  readonly atMs: number;
  readonly offeredPerS: number;
  readonly achievedPerS: number;
  /** Share of the requests to leave in this slice that ended 2xx, 0…1; 1 where there was none. */
  readonly successRate: number;
  readonly latencyMs: LatencyMs;
}

/** All stretches of one label together: the bursts, the calm between them, one level of a step. */
export type PhaseResult = Omit<SeriesPoint, "atMs"> & { readonly label: string };

/** The requests of senders who are told apart. */
export type SenderResult = Omit<SeriesPoint, "atMs"> & { readonly requests: number; readonly ok: number };

/** One run of one pattern against one configuration. Terminal, `--json`, report and page all read it. */
export interface LoadResult {
  /** `auto`, `fifo`, … or the address. */
  readonly configuration: string;
  readonly pattern: Pattern;
  readonly seed: number;
  readonly warmUpMs: number;
  readonly durationMs: number;
  readonly timeoutMs: number;
  /** Requests to leave within the measured span, a second; for a closed loop the rate of its callers. */
  readonly offeredPerS: number;
  readonly achievedPerS: number;
  readonly requests: number;
  readonly ok: number;
  /** ok ÷ requests, 0…1. */
  readonly successRate: number;
  readonly latencyMs: LatencyMs;
  /**
   * `latencyMs` without each tenth of the run in turn, in order of time: how much they differ says how sure the whole is.
   * Empty for a run of less than 1.25 s.
   */
  readonly without: readonly { readonly p50: number; readonly p99: number }[];
  /** How much later than intended requests left for the generator's own reasons. */
  readonly sendLagMs: { readonly p50: number; readonly p99: number; readonly max: number };
  /** Requests that waited for a connection because `maxConnections` were busy; the wait is part of their latency. */
  readonly waitedForConnection: number;
  /** Requests by status (`"200"`, `"429"`) or by why there is none (`"timeout"`, `"ECONNREFUSED"`). */
  readonly statuses: Readonly<Record<string, number>>;
  /** Start of the last reply that was not 2xx. */
  readonly lastErrorBody?: string | undefined;
  /** Why these figures are not the server's: the generator could not keep its own schedule. */
  readonly saturated?: string | undefined;
  readonly series: readonly SeriesPoint[];
  readonly phases: readonly PhaseResult[];
  /** Where many callers share the load: their figures, and those of the one who floods. */
  readonly tenants?: Readonly<Record<string, SenderResult>> | undefined;
  /**
   * With clients that try again: requests above are then their operations, latencies those of whole operations, and a
   * status that of the last attempt.
   */
  readonly goodput?: SimulatedGoodput | undefined;
  /** Batches as the server counted them over this run and its warm-up, where it publishes `sheaf_batch_size_items`. */
  readonly batches?: BatchCounts | undefined;
}

export interface BatchCounts {
  /** 0 without a batch. */
  readonly meanSize: number;
  readonly sizes: readonly BatchSizeCount[];
}

/** `batches` batches of more than the previous entry's `upTo` items and at most `upTo`; null: no upper end. */
export interface BatchSizeCount {
  readonly upTo: number | null;
  readonly batches: number;
}

export const configurationsOf = (results: readonly LoadResult[]): string[] => [
  ...new Set(results.map(({ configuration }) => configuration)),
];
