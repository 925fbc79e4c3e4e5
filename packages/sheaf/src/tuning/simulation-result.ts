import type { Priority } from "../core/contract/options.ts";
import type { DispatchReason } from "../policies/policy.ts";
import type { SimulatedGoodput } from "./goodput.ts";

/** Latency of the calls that got a result after the warm-up, in milliseconds; 0 if there are none. */
export interface SimulatedLatency {
  readonly mean: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

/**
 * Calls by outcome: `rejected` found no room, `timeout` came too late or was dropped as hopeless. With `retries` a call ends like its
 * last attempt, or as `gaveUp` if its client had left.
 */
export interface SimulatedEnds {
  readonly ok: number;
  readonly timeout: number;
  readonly rejected: number;
  readonly error: number;
  readonly gaveUp: number;
}

export interface SimulatedFigures {
  readonly items: SimulatedEnds;
  readonly latencyMs: SimulatedLatency;
}

/** Figures of all tenants of one name together, after the warm-up. */
export interface SimulatedTenantFigures extends SimulatedFigures {
  /** By second of the call, the warm-up included. */
  readonly latencyMsBySecond: readonly SimulatedLatency[];
  /** By second of the call, the warm-up included. */
  readonly itemsBySecond: readonly SimulatedEnds[];
}

export interface SimulationResult {
  readonly latencyMs: SimulatedLatency;
  /** Of the priorities that came, after the warm-up. */
  readonly byPriority: Readonly<Partial<Record<Priority, SimulatedFigures>>>;
  /** With `weights`: of the lighter half of all items, and of the others. */
  readonly latencyMsByWeight: { readonly lighter: SimulatedLatency; readonly heavier: SimulatedLatency } | undefined;
  /** Results per second, from the first call to the last answer. */
  readonly throughputPerS: number;
  readonly items: SimulatedEnds;
  /** With `tenants`: their figures by name. */
  readonly tenants: Readonly<Record<string, SimulatedTenantFigures>> | undefined;
  /** With `retries`. */
  readonly goodput: SimulatedGoodput | undefined;
  readonly runs: number;
  readonly meanBatchSize: number;
  /** Batches by size. */
  readonly batchSizes: ReadonlyMap<number, number>;
  readonly reasons: Readonly<Partial<Record<DispatchReason, number>>>;
  /** Share of the slots' time spent running. */
  readonly utilisation: number;
  /** Virtual time from the first call to the last answer. */
  readonly durationMs: number;
  /** Timers the clock fired: what the simulation itself costs. */
  readonly events: number;
}

/** Of latencies in ascending order. */
export function latencyOf(sorted: Float64Array): SimulatedLatency {
  if (sorted.length === 0) return { mean: 0, p50: 0, p95: 0, p99: 0, max: 0 };
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
  const sum = sorted.reduce((total, ms) => total + ms, 0);
  return { mean: sum / sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: sorted.at(-1)! };
}
